//! A method per field of a settings type, so that settings can gain fields without breaking anyone's code.

/// Defines `settings.field(value)` for every field listed. A field written `field?: T` is an `Option<T>`; its method takes the value
/// with or without `Some`.
///
/// ```
/// use hyperprior::infer::InferSettings;
/// let settings = InferSettings::default().draws(1000).steps(200).budget(None);
/// assert_eq!((settings.draws, settings.steps, settings.budget), (1000, Some(200), None));
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($settings:ident { $($field:ident : $type:ty),* ; $($optional:ident ? : $inner:ty),* $(,)? }) => {
        impl $settings {
            $(
                #[doc = concat!("The same settings with [`", stringify!($field), "`](Self#structfield.", stringify!($field), ") replaced.")]
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )*
            $(
                #[doc = concat!("The same settings with [`", stringify!($optional), "`](Self#structfield.", stringify!($optional), ") replaced.")]
                #[must_use]
                pub fn $optional(mut self, $optional: impl Into<Option<$inner>>) -> Self {
                    self.$optional = $optional.into();
                    self
                }
            )*
        }
    };
}
