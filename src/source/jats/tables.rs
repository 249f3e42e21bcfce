//! Tables as grids: XHTML tables and CALS tables (`tgroup`), with their spans.

use super::body::{Context, Walk, caption};
use super::error::warn;
use super::floats::{Group, graphics, weight};
use super::tags::Tag;
use super::text::{plain_all, plain_some, write_all};
use super::tree::Element;
use crate::record::article::{Cell, Graphic, Table, TableContent, WarningKind};
use std::collections::BTreeMap;
use std::ops::Range;

/// As in HTML (section 4.9.12 of the standard): wider cells are cut.
pub const MAX_COLUMN_SPAN: u32 = 1000;

impl Walk<'_> {
    pub fn table_group(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        let group = Group::read(element);
        for child in element.elements() {
            match child.tag() {
                Tag::TableWrap => self.table_wrap(child, Some(&group), context),
                Tag::TableWrapGroup => self.table_group(child, context),
                Tag::Fig => self.figure(child, None, context),
                _ => {}
            }
        }
    }

    /// One table for each grid, or one for an image.
    pub fn table_wrap(&mut self, element: Element<'_, '_>, group: Option<&Group>, context: Context<'_>) {
        let (title, caption) = caption(element.first(Tag::Caption));
        let group = Group::copy(group, self.budget);
        let mut footnotes = Vec::new();
        for child in element.elements() {
            if matches!(child.tag(), Tag::TableWrapFoot | Tag::Fn | Tag::FnGroup) {
                notes(child, &mut footnotes);
            }
        }
        let place = self.place(element, context);
        let common = Table {
            id: element.attribute("id"),
            label: plain_some(element.first(Tag::Label)),
            title,
            caption,
            group_id: group.id,
            group_label: group.label,
            group_caption: group.caption,
            graphics: graphics(element),
            footnotes,
            attribution: plain_some(element.first(Tag::Attrib)),
            permissions: element.first(Tag::Permissions).map(plain_all),
            place,
            ..Table::default()
        };
        let mut grids = Vec::new();
        find_grids(element, &mut grids);
        if grids.is_empty() {
            let content = if common.graphics.is_empty() { TableContent::Nothing } else { TableContent::Image };
            self.article.tables.push(Table { content, ..common.clone() });
        }
        for (part, grid) in (0..).zip(grids) {
            let passages = weight(&common.caption) + weight(&common.group_caption) + weight(&common.footnotes);
            let names = [&common.label, &common.title, &common.attribution, &common.permissions, &common.group_label];
            let names = names.into_iter().flatten().map(String::len).sum::<usize>();
            if part > 0 && !self.budget.take(passages + names + common.graphics.len() * size_of::<Graphic>()) {
                break;
            }
            let mut table = Table { part, ..common.clone() };
            self.fill(grid, &mut table);
            if table.cells.is_empty() && !table.graphics.is_empty() {
                table.content = TableContent::Image;
            }
            self.article.tables.push(table);
        }
        self.nested(element, context);
    }

    /// A grid without a wrap.
    pub fn bare_table(&mut self, element: Element<'_, '_>, context: Context<'_>) {
        let mut table = Table { id: element.attribute("id"), place: self.place(element, context), ..Table::default() };
        self.fill(element, &mut table);
        self.article.tables.push(table);
    }

    fn fill(&mut self, grid: Element<'_, '_>, table: &mut Table) {
        let names = column_names(grid);
        let mut groups: Vec<Vec<Row<'_, '_>>> = Vec::new();
        row_groups(grid, false, &mut groups);
        let mut builder = Grid::default();
        for group in &groups {
            builder.group(group, &names, Some(self.limits.max_table_cells));
        }
        if builder.area > self.limits.max_table_cells {
            let detail = "cells span more than a table may have; their spans are taken as 1";
            let byte = grid.bytes().start as usize;
            warn(&mut self.article.warnings, self.source, WarningKind::TableSpans, byte, detail);
            builder = Grid::default();
            for group in &groups {
                builder.group(group, &names, None);
            }
        }
        table.content = if builder.cells.is_empty() { TableContent::Nothing } else { TableContent::Grid };
        table.n_rows = builder.n_rows;
        table.n_columns = builder.n_columns;
        table.cells = builder.cells;
    }
}

/// Footnotes, each with its label.
fn notes(element: Element<'_, '_>, found: &mut Vec<super::Passage>) {
    if element.tag() == Tag::Fn || element.has_text() {
        found.push(write_all(element));
        return;
    }
    for child in element.elements() {
        match child.tag() {
            Tag::Fn | Tag::FnGroup => notes(child, found),
            Tag::Title => {}
            _ => found.push(write_all(child)),
        }
    }
    found.retain(|passage| !passage.text.is_empty());
}

fn find_grids<'t, 'a>(element: Element<'t, 'a>, found: &mut Vec<Element<'t, 'a>>) {
    for child in element.elements() {
        match child.tag() {
            // A CALS table holds its grids in `tgroup`.
            Tag::Table if child.first(Tag::Tgroup).is_some() => find_grids(child, found),
            Tag::Table | Tag::Tgroup => found.push(child),
            Tag::Caption | Tag::TableWrap | Tag::TableWrapGroup | Tag::TableWrapFoot | Tag::Fig => {}
            _ => find_grids(child, found),
        }
    }
}

/// A row, and whether it is in a `thead`.
type Row<'t, 'a> = (Element<'t, 'a>, bool);

/// Rows by `thead`, `tbody` and `tfoot`; rows directly in the table are a group as well.
fn row_groups<'t, 'a>(element: Element<'t, 'a>, is_head: bool, groups: &mut Vec<Vec<Row<'t, 'a>>>) {
    let mut loose = Vec::new();
    for child in element.elements() {
        match child.tag() {
            Tag::Tr | Tag::Row => loose.push((child, is_head)),
            Tag::Thead | Tag::Tbody | Tag::Tfoot | Tag::Tgroup => {
                if !loose.is_empty() {
                    groups.push(std::mem::take(&mut loose));
                }
                row_groups(child, child.tag() == Tag::Thead, groups);
            }
            _ => {}
        }
    }
    if !loose.is_empty() {
        groups.push(loose);
    }
}

/// CALS: the number of each named column, from 1.
fn column_names(grid: Element<'_, '_>) -> BTreeMap<String, u32> {
    let mut names = BTreeMap::new();
    let mut number = 0;
    for column in grid.elements().filter(|child| child.tag() == Tag::Colspec) {
        number = column.attribute("colnum").and_then(|stated| stated.trim().parse().ok()).unwrap_or(number + 1);
        if let Some(name) = column.attribute("colname") {
            names.insert(name, number);
        }
    }
    names
}

/// Places cells, whatever the format they come from.
#[derive(Debug, Default)]
pub struct Grid {
    pub cells: Vec<Cell>,
    pub n_rows: u32,
    pub n_columns: u32,
    /// Places that cells want, so far.
    pub area: usize,
}

/// The rows of a `thead`, `tbody` or table while their cells are placed; what spans rows ends with them.
#[derive(Debug)]
pub struct RowGroup {
    count: u32,
    /// Of each column: the first row that is free.
    free: Vec<u32>,
    index: u32,
    column: u32,
}

impl RowGroup {
    /// A group of so many rows, before the first cell of its first row.
    pub fn new(count: u32) -> Self {
        Self { count, free: Vec::new(), index: 0, column: 0 }
    }

    /// Goes to the beginning of a row, from 0.
    pub fn row(&mut self, index: u32) {
        self.index = index;
        self.column = 0;
    }

    fn is_taken(&self, column: u32) -> bool {
        self.free.get(column as usize).is_some_and(|until| *until > self.index)
    }
}

impl Grid {
    /// Places a cell that wants so many rows (0: all that follow) and columns, with its text and the rest of what it is.
    pub fn place(&mut self, group: &mut RowGroup, (row_span, column_span): (u32, u32), cell: Cell) {
        while group.is_taken(group.column) {
            group.column += 1;
        }
        let (column, left) = (group.column, group.count.saturating_sub(group.index).max(1));
        let row_span = if row_span == 0 { left } else { row_span.min(left) };
        // A wide cell ends where one from above stands, so that no place has two.
        let end = column.saturating_add(column_span.clamp(1, MAX_COLUMN_SPAN));
        let end = (column + 1..end).find(|column| group.is_taken(*column)).unwrap_or(end);
        let column_span = end - column;
        if group.free.len() < end as usize {
            group.free.resize(end as usize, 0);
        }
        for until in group.free.get_mut(column as usize..end as usize).unwrap_or_default() {
            *until = group.index + row_span;
        }
        self.area = self.area.saturating_add((row_span as usize).saturating_mul(column_span as usize));
        self.cells.push(Cell { row: self.n_rows + group.index, column, row_span, column_span, ..cell });
        self.n_columns = self.n_columns.max(end);
        group.column = end;
    }

    /// Ends a group of rows.
    pub fn end(&mut self, group: RowGroup) {
        self.n_rows = self.n_rows.saturating_add(group.count);
    }

    /// Places the cells of a group of rows; what spans rows ends with the group. Spans count up to an area, beyond which
    /// nothing is placed, or not at all.
    fn group(&mut self, rows: &[Row<'_, '_>], names: &BTreeMap<String, u32>, max_area: Option<usize>) {
        let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let mut group = RowGroup::new(count);
        for (index, (row, is_head)) in (0..count).zip(rows) {
            group.row(index);
            for element in row.elements() {
                if !matches!(element.tag(), Tag::Td | Tag::Th | Tag::Entry) {
                    continue;
                }
                if max_area.is_some_and(|max| self.area > max) {
                    return;
                }
                if max_area.is_some()
                    && let Some(start) = element.attribute("namest").or_else(|| element.attribute("colname"))
                    && let Some(number) = names.get(&start)
                {
                    let named = group.column.max(number.saturating_sub(1).min(MAX_COLUMN_SPAN));
                    // Places that are left out are places as well.
                    self.area = self.area.saturating_add((named - group.column) as usize);
                    group.column = named;
                }
                let spans = if max_area.is_some() { span(element, names) } else { (1, 1) };
                let bytes = element.bytes();
                let cell = Cell {
                    is_header: *is_head || element.tag() == Tag::Th,
                    text: plain_all(element),
                    byte_start: bytes.start,
                    byte_end: bytes.end,
                    ..Cell::default()
                };
                self.place(&mut group, spans, cell);
            }
        }
        self.end(group);
    }
}

/// Rows and columns that a cell wants; 0 rows are all that follow.
fn span(element: Element<'_, '_>, names: &BTreeMap<String, u32>) -> (u32, u32) {
    let number = |name: &str| element.attribute(name).and_then(|text| text.trim().parse::<u32>().ok());
    let rows = number("rowspan").or_else(|| number("morerows").map(|more| more.saturating_add(1))).unwrap_or(1);
    let named = |name: &str| element.attribute(name).and_then(|name| names.get(&name).copied());
    let columns =
        number("colspan").or_else(|| Some(named("nameend")?.saturating_sub(named("namest")?).saturating_add(1)));
    (rows, columns.unwrap_or(1).clamp(1, MAX_COLUMN_SPAN))
}

impl Table {
    /// The texts of each row, a spanning cell in each place that it covers. Rows end with their last cell.
    pub fn rows(&self) -> Vec<Vec<&str>> {
        let mut rows: Vec<Vec<&str>> = vec![Vec::new(); self.n_rows as usize];
        for cell in &self.cells {
            let from = cell.column as usize;
            let to = from.saturating_add(cell.column_span as usize);
            for row in rows.iter_mut().skip(cell.row as usize).take(cell.row_span as usize) {
                if row.len() < to {
                    row.resize(to, "");
                }
                for place in row.get_mut(from..to).unwrap_or_default() {
                    *place = cell.text.as_str();
                }
            }
        }
        rows
    }

    /// What [`Self::to_text`] gives, with the bytes of each cell in it; cells that overlap in a broken table have none (`0..0`).
    pub fn to_placed_text(&self) -> (String, Vec<Range<usize>>) {
        let text = self.to_text();
        let mut places = Vec::with_capacity(self.cells.len());
        let (mut at, mut row, mut column) = (0usize, 0, 0);
        for cell in &self.cells {
            while row < cell.row {
                at += 1;
                row += 1;
                column = 0;
            }
            while column < cell.column {
                at += 1;
                column += 1;
            }
            let end = at + cell.text.len();
            let is_there = text.get(at..end) == Some(cell.text.as_str());
            places.push(if is_there { at..end } else { 0..0 });
            at = end;
        }
        (text, places)
    }

    /// A line for each row, with cells apart by a tab; a spanning cell is told once.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut row = 0;
        let mut column = 0;
        for cell in &self.cells {
            while row < cell.row {
                text.push('\n');
                row += 1;
                column = 0;
            }
            while column < cell.column {
                text.push('\t');
                column += 1;
            }
            text.push_str(&cell.text);
        }
        text
    }

    /// The whole table as one text, whatever it is made of: label and caption, then the grid in Markdown and the addresses of
    /// images, then the notes.
    pub fn to_full_text(&self) -> String {
        let name: Vec<&str> = [&self.label, &self.title].into_iter().flatten().map(String::as_str).collect();
        let passages = |passages: &[super::Passage]| -> Vec<String> {
            passages.iter().map(|passage| passage.text.clone()).filter(|text| !text.is_empty()).collect()
        };
        let heading = [vec![name.join(". ")], passages(&self.caption)].concat();
        let heading = heading.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
        let mut parts = vec![heading];
        if !self.cells.is_empty() {
            parts.push(self.to_markdown().trim_end().to_owned());
        }
        parts.extend(self.graphics.iter().filter_map(|graphic| graphic.href.clone()));
        parts.extend(passages(&self.footnotes));
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n")
    }

    /// A table in GitHub Flavored Markdown. The first row is the header, since Markdown has no table without.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        let rows = self.rows();
        let n_columns = (self.n_columns as usize).max(1);
        for (index, row) in rows.iter().enumerate() {
            text.push('|');
            for cell in row {
                text.push(' ');
                text.push_str(&cell.replace('\\', "\\\\").replace('|', "\\|"));
                text.push_str(" |");
            }
            // Short rows are filled up by who reads Markdown, but for the header.
            if index == 0 {
                text.push_str(&"  |".repeat(n_columns.saturating_sub(row.len())));
                text.push_str("\n|");
                text.push_str(&" --- |".repeat(n_columns));
            }
            text.push('\n');
        }
        text
    }
}
