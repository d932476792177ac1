//! Experiments.
use std::sync::LazyLock;
pub(crate) struct Tuning { pub(crate) attack: f32, pub(crate) p: [f32; 16] }
pub(crate) static TUNING: LazyLock<Tuning> = LazyLock::new(|| {
    let get = |name: &str, default: f32| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    Tuning { attack: get("T_ATTACK", 10.0), p: std::array::from_fn(|i| get(&format!("T_{i}"), f32::NAN)) }
});
pub(crate) fn tune(index: usize, default: f32) -> f32 { let v = TUNING.p[index]; if v.is_nan() { default } else { v } }
