//! The special functions against values computed with 50 digits (mpmath), identities and numerical differentiation.

use hyperprior_math::special::*;
use hyperprior_testkit::finite_difference::{assert_close, gradient};

/// (a, x, P, ∂P/∂a)
const GAMMA: &[(f64, f64, f64, f64)] = &[
    (0.001, 1e-05, 0.9891230446957827, -10.81839829908634),
    (0.001, 0.5, 0.9994399333435292, -0.5603594001080031),
    (0.1, 1e-08, 0.16659398838160216, -2.998179649596523),
    (0.1, 2.0, 0.9943261760201885, -0.06476493572843736),
    (0.5, 0.25, 0.5204998778130465, -0.797947316783223),
    (1.0, 1.0, 0.6321205588285577, -0.4317297106348987),
    (1.0, 30.0, 0.9999999999999064, -3.7530644505126664e-13),
    (2.5, 0.1, 0.0008861387888124426, -0.0030252729366812103),
    (3.0, 4.0, 0.7618966944464557, -0.17824735787332882),
    (10.0, 3.0, 0.0011024881301154798, -0.0014156364605752093),
    (10.0, 10.0, 0.5420702855281478, -0.12721482320991925),
    (10.0, 25.0, 0.9997785233617512, -0.00022661830393258108),
    (50.0, 70.0, 0.994859497541494, -0.001984018680936287),
    (100.0, 60.0, 1.4815276326460468e-06, -7.841202331593656e-07),
    (1000.0, 1050.0, 0.9413288886226819, -0.0036718379194951804),
    (1000.0, 900.0, 0.0005499022657117829, -6.245709035841566e-05),
    (100000.0, 100000.0, 0.5004205221103651, -0.001261567312316086),
    (100000.0, 99000.0, 0.0007574199211747679, -8.261000735968418e-06),
];

/// (a, b, x, I, ∂I/∂a, ∂I/∂b)
const BETA: &[(f64, f64, f64, f64, f64, f64)] = &[
    (0.01, 2.0, 0.3, 0.9949486867023151, -0.5062684388492539, 0.003672947232990691),
    (0.01, 0.01, 0.7, 0.504176386397618, -24.79725603517942, 25.208994015457034),
    (0.5, 0.5, 0.1, 0.20483276469913345, -0.5926200221433794, 0.2768155243583513),
    (0.5, 0.5, 1e-10, 6.366197723781917e-06, -0.00015049409121949787, 8.825424006040948e-06),
    (2.0, 3.0, 0.4, 0.5248, -0.24086937608755657, 0.15634433641359877),
    (2.0, 3.0, 0.99, 0.99999603, -4.2709536681027946e-06, 1.7292525638372767e-05),
    (5.0, 1.0, 0.5, 0.03125, -0.02166084939249829, 0.05429883116744702),
    (30.0, 2.0, 0.5, 1.4901161193847656e-08, -9.863036581277032e-09, 3.5260566931339984e-08),
    (30.0, 2.0, 0.97, 0.7619134302319995, -0.011177067200527769, 0.2586720305140628),
    (100.0, 200.0, 0.3, 0.10884306564490975, -0.01579154131969264, 0.007306944329466244),
    (100.0, 200.0, 0.4, 0.9916844649260861, -0.0017382206692621053, 0.0010035718577312458),
    (1000.0, 1000.0, 0.52, 0.9632205167213604, -0.001764063004894656, 0.0018360790569215042),
    (1.0, 10000.0, 0.0001, 0.6321389535670701, -0.43170069893161134, 3.6787944071154706e-05),
    (10000.0, 3.0, 0.9995, 0.1245046618184688, -4.207847692428156e-05, 0.1135705919229824),
    (0.2, 50.0, 0.001, 0.5924616633839169, -1.6272038840117404, 0.002291925555869862),
    (0.05, 0.135, 0.3, 0.7039686382597335, -4.326022685431817, 1.443512023715386),
    (3.0, 0.5, 0.8, 0.266569703380069, -0.08611836955127349, 0.5364229479879654),
    (0.2, 0.1, 0.6, 0.3521711395625138, -1.125649023610166, 2.3782314210473188),
    (0.01, 0.001, 0.85, 0.09247151183343555, -8.251575923822505, 84.06382967124577),
    (300.0, 20.0, 0.9, 0.007165489809358714, -0.00034022443950805856, 0.003948113376250555),
];

/// (x, ln Γ, ψ, ψ′)
const GAMMA_LOG: &[(f64, f64, f64, f64)] = &[
    (1e-08, 18.42068073818021, -100000000.57721564, 1.0000000000000002e16),
    (0.01, 4.599479878042022, -100.56088545786868, 10001.621213528313),
    (0.5, 0.5723649429247001, -1.9635100260214235, 4.934802200544679),
    (1.0, 0.0, -0.5772156649015329, 1.6449340668482264),
    (1.5, -0.12078223763524522, 0.03648997397857652, 0.9348022005446793),
    (3.7, 1.428072326665388, 1.1671535393615113, 0.3100378576700383),
    (9.99, 12.779315214350193, 2.250700372831201, 0.10527695014824179),
    (10.0, 12.801827480081469, 2.251752589066721, 0.10516633568168575),
    (25.0, 54.78472939811232, 3.198742512851974, 0.04081066325722558),
    (1000.0, 5905.220423209181, 6.907255195648812, 0.0010005001666666333),
    (10000000000.0, 220258509288.81058, 23.025850929890456, 1.00000000005e-10),
];

/// (a, b, ln B)
const LN_BETA: &[(f64, f64, f64)] = &[
    (1e-05, 1e-05, 12.206072645365683),
    (0.5, 20.0, -0.919251844406604),
    (0.001, 1000000.0, 6.893363375325389),
    (3.0, 1000000000000.0, -82.1999161672287),
    (12.0, 15.0, -18.568172732389435),
    (100000.0, 200000.0, -190958.88527911686),
    (10000000000.0, 10000000000.0, -13862943621.44632),
    (8.0, 9.0, -11.542095842270008),
];

/// (p, Φ⁻¹)
const NORMAL_QUANTILE: &[(f64, f64)] = &[
    (1e-300, -37.0470962993612),
    (1e-100, -21.273453560965326),
    (1e-20, -9.262340089798407),
    (1e-9, -5.9978070150076865),
    (1e-4, -3.7190164854556804),
    (0.01, -2.326347874040841),
    (0.2, -0.8416212335729142),
    (0.49, -0.025068908258711057),
    (0.5, 0.0),
    (0.7, 0.5244005127080407),
    (0.999, 3.090232306167813),
];

#[track_caller]
fn assert_near(got: f64, want: f64, relative: f64, absolute: f64, what: &str) {
    let apart = (got - want).abs();
    assert!(apart <= relative * want.abs() + absolute, "{what}: {got:e} for {want:e}, apart by {apart:e}");
}

#[test]
fn gamma_and_its_log_derivatives() {
    for &(x, ln_gamma_x, digamma_x, trigamma_x) in GAMMA_LOG {
        assert_near(ln_gamma(x), ln_gamma_x, 1e-15, 1e-15, "ln_gamma");
        assert_near(digamma(x), digamma_x, 1e-15, 2e-15, "digamma");
        assert_near(trigamma(x), trigamma_x, 1e-14, 0.0, "trigamma");
    }
    assert!(digamma(0.0).is_nan() && digamma(-1.0).is_nan() && trigamma(-1.0).is_nan());
}

#[test]
fn log_beta_keeps_its_digits() {
    for &(a, b, want) in LN_BETA {
        assert_near(ln_beta(a, b), want, 3e-15, 1e-14, &format!("ln_beta({a}, {b})"));
        assert_eq!(ln_beta(a, b), ln_beta(b, a));
    }
}

#[test]
fn factorials_and_binomial_coefficients() {
    let mut ln_n = 0.0;
    for n in 1..400 {
        let n = f64::from(n);
        ln_n += n.ln();
        assert_near(ln_factorial(n), ln_n, 1e-14, 0.0, "ln_factorial");
        assert_near(ln_choose(n, 1.0), n.ln(), 0.0, 1e-12, "ln_choose");
        assert_near(ln_choose(n, n), 0.0, 0.0, 1e-12, "ln_choose");
    }
    assert_near(ln_factorial(2.5), ln_gamma(3.5), 0.0, 0.0, "between whole numbers");
    // (500 choose 250), 50 digits.
    assert_near(ln_choose(500.0, 250.0), 343.239_994_878_450_16, 1e-14, 0.0, "ln_choose");
}

#[test]
fn incomplete_gamma_and_its_derivative() {
    for &(a, x, p, d_a) in GAMMA {
        assert_near(incomplete_gamma(a, x), p, 1e-13, 0.0, &format!("P({a}, {x})"));
        assert_near(incomplete_gamma_d_a(a, x), d_a, 1e-12, 0.0, &format!("dP({a}, {x})"));
    }
    assert_eq!(incomplete_gamma(2.0, 0.0), 0.0);
    assert_eq!(incomplete_gamma(2.0, f64::INFINITY), 1.0);
}

#[test]
fn incomplete_beta_and_its_derivatives() {
    for &(a, b, x, p, d_a, d_b) in BETA {
        let what = format!("({a}, {b}, {x})");
        assert_near(incomplete_beta(a, b, x), p, 2e-13, 0.0, &what);
        let got = incomplete_beta_d_shapes(a, b, x);
        assert_near(got[0], d_a, 1e-12, 0.0, &what);
        assert_near(got[1], d_b, 1e-12, 0.0, &what);
        // Reflection uses the other branch.
        assert_near(incomplete_beta(b, a, 1.0 - x), 1.0 - p, 1e-12, 1e-15, &what);
    }
    assert_eq!(incomplete_beta(2.0, 3.0, 0.0), 0.0);
    assert_eq!(incomplete_beta(2.0, 3.0, 1.0), 1.0);
}

#[test]
fn derivatives_in_the_shapes_meet_finite_differences() {
    for i in 0..60 {
        // Shapes from 0.05 to 5000 and x from deep in one tail to deep in the other.
        let a = 0.05 * 1.215_f64.powi(i);
        for standard in [-4.0, -1.0, -0.1, 0.3, 2.0, 4.0_f64] {
            let x = a * (standard / a.max(0.3).sqrt()).exp();
            // In log a, whose natural scale is 1/√a.
            let h = 3e-3 / (1.0 + a).sqrt();
            let numeric = gradient(|l| incomplete_gamma(l[0].exp(), x), &[a.ln()], h);
            assert_close(&[a * incomplete_gamma_d_a(a, x)], &numeric, 1e-6, 1e-10);

            let (b, z) = (3.0 / a, x / (x + 3.0 / a));
            let numeric = gradient(|l| incomplete_beta(l[0].exp(), l[1].exp(), z), &[a.ln(), b.ln()], h);
            let [d_a, d_b] = incomplete_beta_d_shapes(a, b, z);
            assert_close(&[a * d_a, b * d_b], &numeric, 1e-6, 1e-10);
        }
    }
}

#[test]
fn pathwise_derivatives_hold_for_huge_shapes() {
    // x = a + √a ξ + (ξ² − 1)/3 + O(1/√a), so ∂x/∂a = 1 + ξ/(2√a) + O(1/a^{3/2}).
    for a in [1e8, 1e12, 1e20, 1e100] {
        for xi in [-3.0, 0.5, 2.0] {
            let x = a + f64::sqrt(a) * xi + (xi * xi - 1.0) / 3.0;
            let excess = (x - a - (xi * xi - 1.0) / 3.0) / (2.0 * a);
            assert_near(gamma_pathwise(a, x) - 1.0, excess, 1e-5, 1e-9, &format!("gamma {a}"));
            // Beta(a, a) is x/(x+y) of two such: in a alone its quantiles keep their logit's distance from 0, as 1/√a.
            let z = 0.5 + xi / f64::sqrt(8.0 * a);
            let [d_a, d_b] = beta_pathwise(a, a, z);
            assert_near((d_a + d_b) * a, -0.5 * (z - 0.5), 1e-5, 1e-12, &format!("beta {a}"));
        }
    }
}

#[test]
fn the_normal_quantile_is_the_inverse_of_the_distribution_function() {
    for &(p, want) in NORMAL_QUANTILE {
        assert_near(normal_quantile(p), want, 3e-16, 1e-15, &format!("quantile {p}"));
    }
    for i in 1..200 {
        let p = f64::from(i) / 200.0;
        assert_near(normal_cdf(normal_quantile(p)), p, 2e-15, 0.0, "round trip");
    }
    assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
    assert_eq!(normal_quantile(1.0), f64::INFINITY);
    assert!(normal_quantile(-0.1).is_nan() && normal_quantile(1.1).is_nan() && normal_quantile(f64::NAN).is_nan());
}

#[test]
fn logistic_functions_do_not_overflow() {
    for x in [-800.0, -40.0, -1.0, 0.0, 1e-9, 3.0, 40.0, 800.0] {
        assert_near(softplus(x) - softplus(-x), x, 1e-15, 1e-15, "softplus(x) − softplus(−x) = x");
        assert_near(sigmoid(x) + sigmoid(-x), 1.0, 1e-15, 0.0, "σ(x) + σ(−x) = 1");
        if x.abs() < 30.0 {
            assert_near(logit(sigmoid(x)), x, 1e-13, 1e-15, "logit");
            assert_near(softplus(x), x.exp().ln_1p(), 1e-15, 0.0, "softplus");
        }
    }
    assert_near(sigmoid(-800.0), 0.0, 0.0, 0.0, "underflow");
}

#[test]
fn log_sums_take_minus_infinity_for_zero() {
    let none = f64::NEG_INFINITY;
    assert_eq!(log_add_exp(none, none), none);
    assert_eq!(log_add_exp(2.0, none), 2.0);
    assert_near(log_add_exp(1000.0, 1000.0), 1000.0 + 2f64.ln(), 1e-15, 0.0, "log_add_exp");
    assert_eq!(log_sum_exp(&[]), none);
    assert_eq!(log_sum_exp(&[none, none]), none);
    assert_near(log_sum_exp(&[-1000.0, none, -1000.0]), -1000.0 + 2f64.ln(), 1e-15, 0.0, "log_sum_exp");
    assert!(log_sum_exp(&[0.0, f64::NAN]).is_nan());
}
