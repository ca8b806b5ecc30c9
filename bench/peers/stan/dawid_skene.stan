data {
  int I, J, K, n;
  array[n] int item, rater, y;
  matrix[K, K] beta;
}
parameters {
  simplex[K] pi;
  array[J, K] simplex[K] theta;
}
model {
  array[I] vector[K] class = rep_array(log(pi), I);
  pi ~ dirichlet(rep_vector(1, K));
  for (j in 1:J) {
    for (k in 1:K) theta[j, k] ~ dirichlet(beta[k]');
  }
  for (r in 1:n) {
    for (k in 1:K) class[item[r], k] += log(theta[rater[r], k, y[r]]);
  }
  for (i in 1:I) target += log_sum_exp(class[i]);
}
