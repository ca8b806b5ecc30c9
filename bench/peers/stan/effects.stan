data {
  int n;
  array[n] int y;
}
parameters {
  real mu;
  real<lower=0, upper=10> sd;
  vector[n] x;
}
model {
  mu ~ normal(0, 10);
  x ~ normal(mu, sd);
  y ~ binomial_logit(10, x);
}
