data {
  int n;
  vector[n] y;
}
parameters {
  real<lower=0, upper=10> level;
  real<lower=0, upper=10> noise;
  real first;
  vector[n - 1] step;
}
transformed parameters {
  vector[n] x = append_row(first, first + level * cumulative_sum(step));
}
model {
  first ~ normal(0, sqrt(1000));
  step ~ std_normal();
  y ~ normal(x, noise);
}
