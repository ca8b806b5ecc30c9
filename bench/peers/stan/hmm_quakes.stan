data {
  int n, K;
  array[n] int y;
  matrix[K, K] alpha;
}
parameters {
  real<lower=0> first;
  vector<lower=0>[K - 1] d;
  array[K] simplex[K] rows;
}
transformed parameters {
  vector[K] lambda = cumulative_sum(append_row(first, d));
  matrix[K, K] A;
  for (j in 1:K) A[j] = rows[j]';
}
model {
  matrix[K, n] emit;
  first ~ gamma(2, 0.1);
  d ~ gamma(2, 0.2);
  for (j in 1:K) rows[j] ~ dirichlet(alpha[j]');
  for (t in 1:n) {
    for (j in 1:K) emit[j, t] = poisson_lpmf(y[t] | lambda[j]);
  }
  target += hmm_marginal(emit, A, rep_vector(1.0 / K, K));
}
