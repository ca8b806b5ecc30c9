# Fits a BUGS model.
hp_fit <- function(model, data = list(), monitor = NULL, inits = NULL, seed = 1L, draws = 4000L, method = "auto",
                   loo = FALSE, ..., out = NULL, quiet = FALSE) {
  folder <- tempfile("hyperprior-")
  dir.create(folder)
  out <- if (is.null(out)) file.path(folder, "run") else path.expand(out)
  arguments <- c(
    "fit", model_file(model, folder), "--data", dump_file(data, "data", folder),
    if (!is.null(inits)) c("--init", dump_file(inits, "inits", folder)),
    if (length(monitor)) c("--monitor", paste(monitor, collapse = ",")),
    "--seed", whole(seed, "seed"), "--draws", whole(draws, "draws"), "--method", method, if (loo) "--loo",
    options_of(list(...)), "--out", out, "--json", "--quiet"
  )
  began <- proc.time()[["elapsed"]]
  told <- hp_run(arguments, quiet)
  found <- jsonlite::fromJSON(paste(told$stdout, collapse = "\n"), simplifyVector = TRUE)
  values <- utils::read.csv(file.path(out, "draws.csv"), check.names = FALSE)
  fit <- list(
    draws = posterior::as_draws_array(as.matrix(values)), summary = table_of(found$parameters),
    verdict = found$verdict, reason = found$reason, warnings = as.character(unlist(found$warnings)),
    log_evidence = found$evidence$log, log_evidence_se = found$evidence$standard_error, khat = found$khat,
    method = found$method, loo = found$loo, seconds = proc.time()[["elapsed"]] - began, run = out, told = found
  )
  structure(fit, class = "hp_fit")
}

# Checks a model and its data without fitting it.
hp_check <- function(model, data = list(), ...) {
  folder <- tempfile("hyperprior-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  arguments <- c("check", model_file(model, folder), "--data", dump_file(data, "data", folder), options_of(list(...)))
  told <- hp_run(arguments)
  writeLines(c(told$stdout, told$stderr))
  invisible(told$stdout)
}

# A whole number as the command reads it.
whole <- function(x, name) {
  if (!is.numeric(x) || length(x) != 1L || is.na(x) || x != round(x) || x < 0) {
    hp_stop(paste0("`", name, "` is a whole number, 0 or more."), 64L)
  }
  format(x, scientific = FALSE, trim = TRUE)
}

# Further options of the command: budget = 60 is --budget 60, and ppc = TRUE is --ppc.
options_of <- function(more) {
  if (length(more) && (is.null(names(more)) || any(!nzchar(names(more))))) {
    hp_stop("Further options have names, such as budget = 60.", 64L)
  }
  one <- function(name) {
    option <- paste0("--", gsub("[_.]", "-", name))
    value <- more[[name]]
    if (isTRUE(value)) option else if (isFALSE(value)) NULL else c(option, paste(format(value, trim = TRUE), collapse = ","))
  }
  unlist(lapply(names(more), one))
}

# The summaries as a data frame with a row for each quantity.
table_of <- function(parameters) {
  columns <- c("mean", "sd", "q05", "median", "q95", "mcse", "ess")
  number <- function(one, column) if (is.null(one[[column]])) NA_real_ else as.numeric(one[[column]])
  values <- lapply(columns, function(column) vapply(parameters, number, 0, column))
  frame <- stats::setNames(data.frame(values, check.names = FALSE), columns)
  cbind(variable = names(parameters), frame, row.names = NULL, stringsAsFactors = FALSE)
}
