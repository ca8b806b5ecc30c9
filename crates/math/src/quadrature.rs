//! Gauss rules: integrals against a weight function as sums over a few nodes.

/// Nodes x and weights w with ∫ f(x) N(x; 0, 1) dx ≈ Σ w f(x), exact for polynomials of degree below twice the number
/// of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussHermite {
    /// The nodes in increasing order; symmetric about zero.
    pub nodes: Vec<f64>,
    /// The weight of each node; positive, with sum one.
    pub weights: Vec<f64>,
}

/// The rule with `nodes_len` nodes for expectations over a standard normal. O(`nodes_len`²).
///
/// The nodes are the zeros of the Hermite polynomial, that is the eigenvalues of the tridiagonal matrix with √1, √2, …
/// next to its diagonal. Bisection on the number of eigenvalues below a point finds each without an initial guess, and one
/// Newton step gives the last digits.
///
/// From about 370 nodes on, weights below 1e-308 underflow to zero.
///
/// ```
/// let rule = hyperprior_math::quadrature::gauss_hermite(3);
/// assert!((rule.nodes[2] - 3f64.sqrt()).abs() < 1e-15);
/// assert!((rule.weights[1] - 2.0 / 3.0).abs() < 1e-15);
/// ```
pub fn gauss_hermite(nodes_len: usize) -> GaussHermite {
    let (mut nodes, mut weights) = (vec![0.0; nodes_len], vec![0.0; nodes_len]);
    for above in nodes_len / 2..nodes_len {
        let below = nodes_len - 1 - above;
        let node = if above == below { 0.0 } else { zero(nodes_len, above) };
        let [_, previous] = last_two(nodes_len, node);
        let weight = 1.0 / (nodes_len as f64 * previous * previous);
        (nodes[above], nodes[below]) = (node, -node);
        (weights[above], weights[below]) = (weight, weight);
    }
    GaussHermite { nodes, weights }
}

/// The zero with `rank` zeros below it.
fn zero(nodes_len: usize, rank: usize) -> f64 {
    // Every zero is within 2 √n of the origin.
    let (mut low, mut high) = (0.0, 2.0 * (nodes_len as f64).sqrt() + 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if zeros_below(nodes_len, middle) > rank { high = middle } else { low = middle }
    }
    let x = 0.5 * (low + high);
    let [value, previous] = last_two(nodes_len, x);
    x - value / ((nodes_len as f64).sqrt() * previous)
}

/// How many zeros are below x: the number of negative pivots of the matrix minus x (Sylvester's law of inertia).
fn zeros_below(nodes_len: usize, x: f64) -> usize {
    let (mut count, mut pivot) = (0, 1.0);
    for k in 0..nodes_len {
        pivot = -x - k as f64 / pivot;
        if pivot == 0.0 {
            pivot = -f64::MIN_POSITIVE;
        }
        count += usize::from(pivot < 0.0);
    }
    count
}

/// The normalised Hermite polynomials of degree n and n − 1 at x; the derivative of the first is √n times the second.
fn last_two(degree: usize, x: f64) -> [f64; 2] {
    let (mut value, mut previous) = (1.0, 0.0);
    for k in 0..degree {
        let next = (x * value - (k as f64).sqrt() * previous) / ((k + 1) as f64).sqrt();
        (value, previous) = (next, value);
    }
    [value, previous]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches nodes that are not the zeros, wrong weights, and a rule with a repeated node.
    #[test]
    fn moments_of_the_normal_are_exact_up_to_the_rules_degree() {
        for nodes_len in [1, 2, 5, 8, 20, 25, 64, 200] {
            let rule = gauss_hermite(nodes_len);
            assert!(rule.nodes.is_sorted_by(|a, b| a < b), "{nodes_len}");
            let mut expected = 1.0;
            for degree in (0..2 * nodes_len.min(40)).step_by(2) {
                let powers = |x: &f64| x.powi(degree as i32);
                let moment: f64 = rule.nodes.iter().zip(&rule.weights).map(|(x, w)| w * powers(x)).sum();
                assert!((moment / expected - 1.0).abs() < 1e-12, "{nodes_len} nodes, degree {degree}: {moment}");
                expected *= (degree + 1) as f64;
            }
            // The next even moment is too small by n!, which distinguishes this rule from any with more nodes.
            if nodes_len < 9 {
                let degree = 2 * nodes_len as i32;
                let moment: f64 = rule.nodes.iter().zip(&rule.weights).map(|(x, w)| w * x.powi(degree)).sum();
                let factorial: f64 = (1..=nodes_len).map(|k| k as f64).product();
                assert!(((expected - moment) / factorial - 1.0).abs() < 1e-8, "{nodes_len}: {moment} of {expected}");
            }
        }
    }

    #[test]
    fn zero_nodes_give_an_empty_rule() {
        assert!(gauss_hermite(0).nodes.is_empty());
    }
}
