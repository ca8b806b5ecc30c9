data {
  int rats, weeks;
  row_vector[weeks] day;
  matrix[rats, weeks] weight;
}
parameters {
  vector[rats] a, b;
  real mu_a, mu_b;
  real<lower=0, upper=50> sigma;
  real<lower=0, upper=100> sigma_a;
  real<lower=0, upper=10> sigma_b;
}
model {
  mu_a ~ normal(250, 100);
  mu_b ~ normal(0, 10);
  a ~ normal(mu_a, sigma_a);
  b ~ normal(mu_b, sigma_b);
  to_vector(weight) ~ normal(to_vector(rep_matrix(a, weeks) + b * (day - 22)), sigma);
}
generated quantities {
  real at_birth = mu_a - 22 * mu_b;
}
