//! Tables of a page as grids, placed as those of other formats are.

use super::body::Walk;
use super::selectors::Part;
use super::tree::{Element, Tag};
use crate::record::article::{Cell, Table, TableContent, WarningKind};
use crate::source::jats::error::warn;
use crate::source::jats::tables::{Grid, MAX_COLUMN_SPAN, RowGroup};

/// Rows of a `thead`, a `tbody` or directly in the table, and whether they are the head.
type Group = (Vec<usize>, bool);

impl Walk<'_, '_, '_> {
    /// One table for each grid, or one for images.
    pub fn push_tables(&mut self, grids: &[usize], common: Table) {
        if grids.is_empty() {
            let content = if common.graphics.is_empty() { TableContent::Nothing } else { TableContent::Image };
            self.article.tables.push(Table { content, ..common });
            return;
        }
        for (part, grid) in (0..).zip(grids) {
            // Beside one grid stand words and images; further grids repeat only its name.
            let mut table = if part == 0 {
                common.clone()
            } else {
                Table {
                    id: common.id.clone(),
                    label: common.label.clone(),
                    place: common.place.clone(),
                    ..Table::default()
                }
            };
            table.part = part;
            self.fill(*grid, &mut table);
            if table.cells.is_empty() && !table.graphics.is_empty() {
                table.content = TableContent::Image;
            }
            self.article.tables.push(table);
        }
    }

    fn fill(&mut self, grid: usize, table: &mut Table) {
        let mut groups: Vec<Group> = Vec::new();
        self.row_groups(grid, &mut groups);
        let max_area = self.limits.max_table_cells;
        let mut built = self.place_groups(&groups, Some(max_area));
        if built.area > max_area {
            let byte = self.words.tree.element(grid).map_or(0, |element| element.start as usize);
            let detail = "cells span more than a table may have; their spans are taken as 1";
            warn(&mut self.article.warnings, self.words.source, WarningKind::TableSpans, byte, detail);
            built = self.place_groups(&groups, None);
        }
        // A grid whose cells hold no words is one for looks, around an image.
        if built.cells.iter().all(|cell| cell.text.is_empty()) {
            built = Grid::default();
        }
        table.content = if built.cells.is_empty() { TableContent::Nothing } else { TableContent::Grid };
        table.n_rows = built.n_rows;
        table.n_columns = built.n_columns;
        table.cells = built.cells;
    }

    /// Rows by `thead`, `tbody` and `tfoot`, those of inner tables left out.
    fn row_groups(&self, grid: usize, groups: &mut Vec<Group>) {
        let tree = self.words.tree;
        let rows_of = |index: usize| -> Vec<usize> {
            tree.children(index).filter(|child| tree.element(*child).is_some_and(|one| one.tag == Tag::Row)).collect()
        };
        let loose = rows_of(grid);
        if !loose.is_empty() {
            groups.push((loose, false));
        }
        for child in tree.children(grid) {
            let Some(element) = tree.element(child) else { continue };
            match element.tag {
                // What is a note is told as such.
                Tag::RowGroup | Tag::TableHead if !element.is(Part::Note) => {
                    groups.push((rows_of(child), element.tag == Tag::TableHead));
                }
                _ => {}
            }
        }
    }

    fn place_groups(&self, groups: &[Group], max_area: Option<usize>) -> Grid {
        let tree = self.words.tree;
        let mut grid = Grid::default();
        for (rows, is_head) in groups {
            let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
            let mut group = RowGroup::new(count);
            for (index, row) in (0..count).zip(rows) {
                group.row(index);
                for child in tree.children(*row) {
                    let Some(element) = tree.element(child) else { continue };
                    if !matches!(element.tag, Tag::Cell | Tag::HeaderCell) {
                        continue;
                    }
                    if max_area.is_some_and(|max| grid.area > max) {
                        return grid;
                    }
                    let spans = if max_area.is_some() { span(element) } else { (1, 1) };
                    let cell = Cell {
                        is_header: *is_head || element.tag == Tag::HeaderCell,
                        text: self.words.plain(child),
                        byte_start: element.start.min(element.end),
                        byte_end: element.end,
                        ..Cell::default()
                    };
                    grid.place(&mut group, spans, cell);
                }
            }
            grid.end(group);
        }
        grid
    }
}

/// Rows and columns that a cell wants; 0 rows are all that follow.
fn span(element: &Element<'_>) -> (u32, u32) {
    let number = |name: &str| element.attribute(name).and_then(|text| text.trim().parse::<u32>().ok());
    (number("rowspan").unwrap_or(1), number("colspan").unwrap_or(1).clamp(1, MAX_COLUMN_SPAN))
}
