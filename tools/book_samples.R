# Runs the R samples of a page of the book, one after another, from the root of the repository.
page <- readLines(commandArgs(trailingOnly = TRUE)[1], encoding = "UTF-8")
begins <- which(page == "```r")
ends <- vapply(begins, function(at) at + which(page[-seq_len(at)] == "```")[1], 0)
samples <- mapply(function(from, to) paste(page[(from + 1):(to - 1)], collapse = "\n"), begins, ends)
grDevices::pdf(NULL)
world <- new.env(parent = globalenv())
for (k in seq_along(samples)) {
  cat("sample", k, "of", length(samples), "\n")
  for (expression in parse(text = samples[k])) {
    found <- withVisible(eval(expression, world))
    if (found$visible) print(found$value)
  }
}
stopifnot(length(samples) > 0)
