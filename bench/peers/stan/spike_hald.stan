// g is summed over its 2^p values; b[j] is drawn, and beta[j] is b[j] where g[j] = 1.
data {
  int n, p;
  matrix[n, p] X;
  vector[n] y;
  real b0;
}
transformed data {
  int patterns = 1;
  for (j in 1:p) patterns *= 2;
  matrix[p, patterns] g;
  for (m in 1:patterns) {
    int rest = m - 1;
    for (j in 1:p) {
      g[j, m] = rest % 2;
      rest = rest %/% 2;
    }
  }
}
parameters {
  vector[p] b;
  real<lower=0> tau;
}
transformed parameters {
  vector[patterns] weight;
  for (m in 1:patterns) weight[m] = normal_lpdf(y | X * (g[, m] .* b), inv_sqrt(tau));
}
model {
  tau ~ gamma(2, b0);
  b ~ normal(0, 2 * inv_sqrt(tau));
  target += log_sum_exp(weight);
}
generated quantities {
  vector[p] beta = g[, categorical_logit_rng(weight)] .* b;
}
