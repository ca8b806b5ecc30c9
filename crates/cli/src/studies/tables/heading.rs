//! Headings of the tables.

use hyperprior_def::Method;

/// The heading of a method's column.
pub fn heading(method: Method) -> String {
    match method {
        Method::Hvm => "HVM".to_owned(),
        method => method.to_string(),
    }
}
