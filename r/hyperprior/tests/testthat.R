library(testthat)
library(hyperprior)

test_check("hyperprior")
