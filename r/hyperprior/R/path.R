# The command that does the work.
#
# @param path where it is; remembered for the session. Without it, the place that is used: the option `hyperprior.path`, the
#   environment variable `HYPERPRIOR`, or what `PATH` has.
hp_path <- function(path = NULL) {
  if (!is.null(path)) {
    if (!is.character(path) || length(path) != 1L || !file.exists(path)) {
      hp_stop(paste0("There is no file ", paste(format(path), collapse = ", "), "."), 64L)
    }
    options(hyperprior.path = normalizePath(path))
  }
  found <- getOption("hyperprior.path", Sys.getenv("HYPERPRIOR", Sys.which("hyperprior")))
  if (!nzchar(found)) {
    hp_stop(paste(
      "The command hyperprior was not found.",
      "Install it, or name its place: hp_path(\"/home/me/bin/hyperprior\")."
    ), 69L)
  }
  unname(found)
}

# The version of the command.
hp_version <- function() sub("^hyperprior ", "", hp_run("--version")$stdout[1])

# An error that the command reported, with its exit code.
hp_stop <- function(message, code) {
  stop(structure(class = c("hp_error", "error", "condition"), list(message = message, call = NULL, code = code)))
}

# Runs the command. Its messages go to the console unless `quiet`; what it says of an error becomes an R condition.
hp_run <- function(arguments, quiet = TRUE) {
  said <- tempfile("hyperprior-")
  on.exit(unlink(said))
  stdout <- suppressWarnings(system2(hp_path(), shQuote(arguments), stdout = TRUE, stderr = said))
  code <- attr(stdout, "status")
  stderr <- if (file.exists(said)) readLines(said, warn = FALSE, encoding = "UTF-8") else character()
  if (!is.null(code) && code != 0L) {
    text <- sub("^error: ", "", paste(stderr, collapse = "\n"))
    hp_stop(if (nzchar(text)) text else paste("hyperprior ended with code", code), as.integer(code))
  }
  notes <- stderr[nzchar(stderr)]
  if (!quiet && length(notes)) message(paste(notes, collapse = "\n"))
  list(stdout = enc2utf8(stdout), stderr = notes)
}
