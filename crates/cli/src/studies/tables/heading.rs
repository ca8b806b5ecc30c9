//! Headings of the tables.

use hyperprior_def::Method;

/// How a method is called at the head of a column.
pub fn heading(method: Method) -> String {
    match method {
        Method::Hvm => "HVM".to_owned(),
        method => method.to_string(),
    }
}
