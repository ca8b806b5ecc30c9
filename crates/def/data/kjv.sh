#!/usr/bin/env bash
# Makes kjv.ldac.gz, kjv.vocab.gz and kjv.names.gz from Debian's packages bible-kjv-text (the text, in the public domain) and
# bible-kjv (the program that unpacks it): a chapter to a document, our own words and stop words.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get download -q bible-kjv-text bible-kjv)
for package in "$work"/*.deb; do dpkg -x "$package" "$work"; done

# One verse on each line: `1Chr3:16 And the sons of Jehoiakim: …`. The names of books are cut short there.
"$work/usr/bin/bible" -f -p "$work/usr/lib" gen1:1-rev22:21 >"$work/verses"

awk '
  BEGIN {
    split("Genesis Exodus Leviticus Numbers Deuteronomy Joshua Judges Ruth 1_Samuel 2_Samuel 1_Kings 2_Kings 1_Chronicles " \
          "2_Chronicles Ezra Nehemiah Esther Job Psalms Proverbs Ecclesiastes Song_of_Solomon Isaiah Jeremiah Lamentations " \
          "Ezekiel Daniel Hosea Joel Amos Obadiah Jonah Micah Nahum Habakkuk Zephaniah Haggai Zechariah Malachi Matthew Mark " \
          "Luke John Acts Romans 1_Corinthians 2_Corinthians Galatians Ephesians Philippians Colossians 1_Thessalonians " \
          "2_Thessalonians 1_Timothy 2_Timothy Titus Philemon Hebrews James 1_Peter 2_Peter 1_John 2_John 3_John Jude " \
          "Revelation", names, " ")
  }
  {
    match($1, /[0-9]+:/)
    chapter = substr($1, RSTART, RLENGTH - 1)
    if (substr($1, 1, RSTART - 1) != book) { book = substr($1, 1, RSTART - 1); books++; last = "" }
    if (chapter != last) {
      if (NR > 1) printf "\n"
      last = chapter
      name = names[books] " " chapter
      gsub("_", " ", name)
      print name > NAMES
    }
    $1 = ""
    printf "%s", $0
  }
  END { printf "\n" }
' NAMES="$work/names" "$work/verses" >"$work/chapters.txt"

# Two verbs that are other words today.
{ cat english.stop; echo art wilt; } >"$work/stop"
cargo run --quiet --release -p hyperprior-def --example kjv -- "$work/chapters.txt" "$work/names" "$work/stop" "$work"
for part in ldac vocab names; do
  # Without the time, so that the same text gives the same file.
  gzip -9 -n -c "$work/kjv.$part" >"kjv.$part.gz"
done
