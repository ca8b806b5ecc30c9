//! Turns the chapters of the Bible, one on each line, into the built-in corpus; `data/kjv.sh` runs it.

use hyperprior_def::corpus::{ReadSettings, StopWords, TextSettings, read};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [chapters, names, stop_words, out] = &arguments[..] else {
        return Err("usage: kjv CHAPTERS NAMES STOP-WORDS FOLDER".into());
    };
    let text = TextSettings::default()
        .stop_words(StopWords::File(stop_words.into()))
        .least_documents(5)
        .largest_share(1.0)
        .most_terms(None);
    let settings = ReadSettings::default().names(PathBuf::from(names)).text(text);
    let (corpus, warnings) = read(chapters, &settings)?;
    for warning in warnings {
        eprintln!("{warning}");
    }
    let create = |name: &str| File::create(Path::new(out).join(name)).map(BufWriter::new);
    corpus.write_ldac(&mut create("kjv.ldac")?)?;
    corpus.write_vocabulary(&mut create("kjv.vocab")?)?;
    let mut file = create("kjv.names")?;
    corpus.names().iter().try_for_each(|name| writeln!(file, "{name}"))?;
    Ok(())
}
