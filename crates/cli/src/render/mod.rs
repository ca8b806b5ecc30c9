//! Output for people: text for a terminal, figures and HTML pages.

pub mod figure;
pub mod html;
pub mod style;
pub mod terminal;
