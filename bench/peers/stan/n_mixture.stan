// N[i] is summed from the largest count at its site to a bound.
data {
  int sites, visits;
  vector[sites] forest;
  array[sites, visits] int y;
}
transformed data {
  int most = 100;
}
parameters {
  real a, b;
  real<lower=0, upper=1> p;
}
model {
  a ~ normal(0, inv_sqrt(0.1));
  b ~ normal(0, inv_sqrt(0.1));
  for (i in 1:sites) {
    real rate = a + b * forest[i];
    int least = max(y[i]);
    vector[most - least + 1] count;
    for (N in least:most) {
      count[N - least + 1] = poisson_log_lpmf(N | rate) + binomial_lpmf(y[i] | N, p);
    }
    target += log_sum_exp(count);
  }
}
