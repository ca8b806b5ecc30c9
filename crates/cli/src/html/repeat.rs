//! What repeats a run.

use super::escape;
use super::read::Run;
use crate::error::CliError;

/// The command, and the configuration that it goes by.
pub fn section(run: &Run) -> Result<String, CliError> {
    let Some(config) = run.text("config.toml")? else { return Ok(String::new()) };
    let folder = escape::argument(&run.folder.to_string_lossy());
    let folder = escape::text(&folder);
    Ok(format!(
        "<p>The same numbers again, from the folder that the run was started in:</p>\n<pre><code>hyperprior rerun {folder}</code></pre>\n\
         <details><summary>config.toml</summary><pre><code>{}</code></pre></details>",
        escape::text(config.trim_end())
    ))
}
