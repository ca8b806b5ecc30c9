data {
  int n;
  array[n, 20] int<lower=0, upper=1> y;
}
parameters {
  vector<lower=0>[20] a;
  vector[20] b;
  vector[n] x;
}
model {
  a ~ lognormal(0, 0.5);
  b ~ normal(0, 2);
  x ~ std_normal();
  for (j in 1:20) y[, j] ~ bernoulli_logit(a[j] * (x - b[j]));
}
