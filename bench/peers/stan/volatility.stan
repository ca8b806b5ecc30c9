data {
  int n;
  vector[n] y;
}
parameters {
  real mu;
  real<lower=0, upper=1> half;
  real<lower=0, upper=2> sd;
  vector[n] e;
}
transformed parameters {
  real phi = 2 * half - 1;
  vector[n] h = sd * e;
  h[1] /= sqrt(1 - square(phi));
  for (t in 2:n) h[t] += phi * h[t - 1];
  h += mu;
}
model {
  mu ~ normal(0, sqrt(10));
  half ~ beta(20, 1.5);
  e ~ std_normal();
  y ~ normal(0, exp(h / 2));
}
