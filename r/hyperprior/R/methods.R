print.hp_fit <- function(x, digits = 3L, most = 20L, ...) {
  cat(x$told$model, ": ", posterior::ndraws(x$draws), " draws by ", x$method, ", ", format(x$seconds, digits = 2L), " s\n", sep = "")
  cat("Verdict: ", x$verdict, ". ", toupper(substr(x$reason, 1L, 1L)), substring(x$reason, 2L), ".\n", sep = "")
  for (warning in x$warnings) cat("Warning: ", warning, "\n", sep = "")
  if (is.numeric(x$log_evidence)) {
    cat("Log evidence ", format(x$log_evidence, nsmall = 2L, digits = 6L), " \u00b1 ", format(x$log_evidence_se, digits = 2L), "\n", sep = "")
  }
  cat("\n")
  show_rows(x$summary, digits, most)
  invisible(x)
}

# Prints the rows of what stands alone or in a small array, and a line with the range of the means for each larger array.
show_rows <- function(frame, digits, most = 20L) {
  array <- sub("\\[.*$", "", frame$variable)
  size <- table(array)[array]
  single <- frame[size <= ARRAY_MAX, , drop = FALSE]
  if (nrow(single)) print(utils::head(single, most), digits = digits, row.names = FALSE)
  if (nrow(single) > most) cat("and ", nrow(single) - most, " more; summary() has all of them\n", sep = "")
  for (name in unique(array[size > ARRAY_MAX])) {
    means <- format(range(frame$mean[array == name]), digits = digits, trim = TRUE)
    cat(name, ", ", sum(array == name), " values: means from ", means[1], " to ", means[2], "\n", sep = "")
  }
}

# The largest array whose elements have rows of their own.
ARRAY_MAX <- 8L

summary.hp_fit <- function(object, ...) object$summary

plot.hp_fit <- function(x, variables = NULL, most = 6L, ...) {
  names <- posterior::variables(x$draws)
  if (is.null(variables)) variables <- utils::head(names, most)
  unknown <- setdiff(variables, names)
  if (length(unknown)) hp_stop(paste0("There are no draws of ", paste(unknown, collapse = ", "), "."), 65L)
  columns <- ceiling(sqrt(length(variables)))
  old <- graphics::par(mfrow = c(ceiling(length(variables) / columns), columns), mar = c(3, 3, 2, 1))
  on.exit(graphics::par(old))
  for (variable in variables) {
    values <- as.vector(posterior::extract_variable(x$draws, variable))
    if (all(values == round(values)) && length(unique(values)) <= 100L) {
      graphics::plot(table(values) / length(values), main = variable, xlab = "", ylab = "", ...)
    } else {
      graphics::plot(stats::density(values), main = variable, xlab = "", ylab = "", ...)
    }
  }
  invisible(x)
}

predict.hp_fit <- function(object, newdata, monitor = NULL, reuse = NULL, seed = 1L, ...) {
  folder <- tempfile("hyperprior-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  out <- file.path(folder, "prediction")
  told <- hp_run(c(
    "predict", object$run, "--data", dump_file(newdata, "data", folder),
    if (length(monitor)) c("--monitor", paste(monitor, collapse = ",")),
    if (length(reuse)) c("--reuse", paste(reuse, collapse = ",")),
    "--seed", whole(seed, "seed"), options_of(list(...)), "--out", out, "--json", "--quiet"
  ))
  found <- jsonlite::fromJSON(paste(told$stdout, collapse = "\n"))
  values <- utils::read.csv(file.path(out, "draws.csv"), check.names = FALSE)
  structure(
    list(draws = posterior::as_draws_array(as.matrix(values)), summary = table_of(found$parameters), told = found),
    class = "hp_prediction"
  )
}

print.hp_prediction <- function(x, digits = 3L, ...) {
  show_rows(x$summary, digits)
  invisible(x)
}

# Leave-one-out cross-validation of a fit with `loo = TRUE`.
hp_loo <- function(fit) {
  if (!inherits(fit, "hp_fit") || is.null(fit$loo)) hp_stop("Fit the model with loo = TRUE.", 64L)
  structure(fit$loo, class = "hp_loo")
}

print.hp_loo <- function(x, ...) {
  cat("elpd_loo ", format(x$elpd_loo, digits = 5L), " \u00b1 ", format(x$elpd_loo_standard_error, digits = 3L), "\n", sep = "")
  cat("p_loo    ", format(x$p_loo, digits = 3L), "\n", sep = "")
  cat(x$khat_above, " of ", x$units, " k\u0302 above ", format(x$khat_limit, digits = 2L), "\n", sep = "")
  invisible(x)
}

as_draws.hp_fit <- function(x, ...) x$draws
as_draws_array.hp_fit <- function(x, ...) x$draws
as_draws_matrix.hp_fit <- function(x, ...) posterior::as_draws_matrix(x$draws)
as_draws_df.hp_fit <- function(x, ...) posterior::as_draws_df(x$draws)
as_draws_rvars.hp_fit <- function(x, ...) posterior::as_draws_rvars(x$draws)

as.mcmc.list.hp_fit <- function(x, ...) {
  values <- posterior::as_draws_matrix(x$draws)
  values <- matrix(as.numeric(values), nrow(values), dimnames = list(NULL, colnames(values)))
  coda::mcmc.list(coda::mcmc(values))
}
