has_command <- nzchar(Sys.getenv("HYPERPRIOR", Sys.which("hyperprior")))
mean_model <- "model {
  for (i in 1:n) { y[i] ~ dnorm(mu, tau) }
  mu ~ dnorm(0, 0.001)
  tau ~ dgamma(1, 1)
}"
y <- c(1, 2, 3, 2.5, NA)

test_that("text, files and functions are the same model", {
  skip_if_not(has_command)
  file <- tempfile(fileext = ".bug")
  writeLines(mean_model, file)
  written <- function() {
    for (i in 1:n) {
      y[i] ~ dnorm(mu, tau)
    }
    mu ~ dnorm(0, 0.001)
    tau ~ dgamma(1, 1)
  }
  fits <- lapply(list(mean_model, file, written), hp_fit, data = list(n = 5, y = y))
  expect_equal(fits[[1]]$summary, fits[[2]]$summary)
  expect_equal(fits[[1]]$summary, fits[[3]]$summary)
  expect_equal(fits[[1]]$verdict, "trust")
  expect_equal(sort(fits[[1]]$summary$variable), c("mu", "tau", "y[5]"))
})

test_that("draws have the moments of the summary, for posterior and for coda", {
  skip_if_not(has_command)
  fit <- hp_fit(mean_model, list(n = 5, y = y), draws = 1000)
  mu <- fit$summary[fit$summary$variable == "mu", ]
  expect_equal(dim(fit$draws), c(1000L, 1L, 3L))
  expect_equal(mean(posterior::extract_variable(fit$draws, "mu")), mu$mean, tolerance = 1e-8)
  expect_s3_class(posterior::as_draws_df(fit), "draws_df")
  skip_if_not_installed("coda")
  expect_equal(mean(as.matrix(coda::as.mcmc.list(fit))[, "mu"]), mu$mean, tolerance = 1e-8)
})

test_that("limits in functions, matrices, factors and data frames are read", {
  skip_if_not(has_command)
  half <- function() {
    s ~ dnorm(0, 1) %_% T(0, )
    y ~ dnorm(s, 1)
  }
  expect_gt(min(hp_fit(half, list(y = -1))$draws), 0)
  regression <- "model {
    for (i in 1:n) { y[i] ~ dnorm(inprod(X[i, ], b[]) + a[g[i]], 1) }
    for (k in 1:2) { b[k] ~ dnorm(0, 0.01); a[k] ~ dnorm(0, 0.01) }
  }"
  X <- cbind(c(1, 2, 3, 4, 5, 6), c(2, 0, 1, 0, 2, 1))
  frame <- data.frame(y = X[, 1] * 2 - X[, 2] + rep(c(0, 5), 3), g = factor(rep(c("low", "up"), 3)))
  fit <- hp_fit(regression, list(n = 6, X = X, frame))
  exact <- lm(frame$y ~ 0 + X + frame$g)
  order <- match(c("b[1]", "b[2]", "a[1]", "a[2]"), fit$summary$variable)
  expect_lt(max(abs(fit$summary$mean[order] - coef(exact))), 0.3)
})

test_that("errors are conditions with the words and the code of the command", {
  skip_if_not(has_command)
  error <- expect_error(hp_fit("model { y ~ dnrm(0, 1) }", list(y = 1)), class = "hp_error")
  expect_match(conditionMessage(error), "did you mean `dnorm`")
  expect_equal(error$code, 65L)
  expect_error(hp_fit("nowhere.bug"), "There is no file", class = "hp_error")
  expect_error(hp_fit(mean_model, list(5)), "list with names", class = "hp_error")
  expect_error(hp_fit(mean_model, list(n = 5, y = y), seed = -1), "whole number", class = "hp_error")
  expect_error(hp_fit(mean_model, list(n = 5, y = list(1))), "is of class list", class = "hp_error")
})

test_that("a fit predicts, is cross-validated, plotted and printed", {
  skip_if_not(has_command)
  fit <- hp_fit(mean_model, list(n = 5, y = c(1, 2, 3, 2.5, 1.5)), loo = TRUE)
  found <- predict(fit, list(n = 2, y = c(NA, NA)))
  expect_equal(found$summary$variable, c("y[1]", "y[2]"))
  expect_lt(abs(found$summary$mean[1] - fit$summary$mean[fit$summary$variable == "mu"]), 0.2)
  expect_equal(hp_loo(fit)$units, 5)
  pdf(NULL)
  on.exit(dev.off())
  expect_silent(plot(fit))
  expect_output(print(fit), "Verdict: trust")
})

test_that("large arrays are one line with the range of their means", {
  frame <- data.frame(variable = c("mu", paste0("x[", 1:12, "]")), mean = 0:12, sd = 1, q05 = 0, median = 0, q95 = 0, mcse = 0, ess = 9)
  said <- capture.output(show_rows(frame, 3))
  expect_match(said[2], "mu")
  expect_equal(said[3], "x, 12 values: means from 1 to 12")
})
