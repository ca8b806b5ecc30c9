data {
  int n;
  array[n] int y;
}
parameters {
  array[2] real<lower=0> lambda;
}
model {
  // Sums up to each year of the two rates' log densities, so that all change points together cost one pass.
  vector[n] early, late;
  lambda ~ gamma(1, 1);
  for (t in 1:n) {
    early[t] = poisson_lpmf(y[t] | lambda[1]);
    late[t] = poisson_lpmf(y[t] | lambda[2]);
  }
  target += log_sum_exp(cumulative_sum(early) - cumulative_sum(late)) + sum(late);
}
