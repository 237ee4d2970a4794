//! The Storage view.

use ratatui::layout::Rect;

use super::paint::Paint;
use super::scene::Scene;

pub fn paint(_paint: &mut Paint, _scene: &Scene, _area: Rect) {}

pub fn details(
    _scene: &Scene,
    _known: &crate::rules::fleet::Known<providers::model::StorageItem>,
) -> Vec<super::paint::Runs> {
    Vec::new()
}
