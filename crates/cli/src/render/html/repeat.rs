//! The section on how to repeat a run.

use super::escape;
use super::read::Run;
use crate::error::CliError;

/// The command, and the configuration.
pub fn section(run: &Run) -> Result<String, CliError> {
    let Some(config) = run.text("config.toml")? else { return Ok(String::new()) };
    let folder = escape::argument(&run.folder.to_string_lossy());
    let folder = escape::text(&folder);
    Ok(format!(
        "<p>To get the same numbers again, run in the folder in which the run was started:</p>\n\
         <pre><code>hyperprior rerun {folder}</code></pre>\n\
         <details><summary>config.toml</summary><pre><code>{}</code></pre></details>",
        escape::text(config.trim_end())
    ))
}
