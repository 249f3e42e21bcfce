//! The list of case reports beside the pages of the American Journal of Case Reports: a table of PMID, DOI and up to three
//! final diagnoses, as Hirosawa et al. (2024) publish theirs (MTDiag paper, section B.3). CSV or XLSX.
//!
//! The first diagnosis is the primary one, the others are secondary. A row whose DOI is not one of the journal stays, with
//! an empty id, so that whoever reads the list can count it.

use crate::error::{Panics, catch_panic, input};
use calamine::{DataRef, Reader, SheetType, Xlsx};
use std::collections::BTreeMap;
use std::io::{Cursor, Read};

/// An article of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedArticle {
    /// `AJCR937787`; empty where the DOI is not one of the journal.
    pub ajcr_id: String,
    /// Digits.
    pub pmid: Option<String>,
    /// `10.12659/AJCR.937787`; where it is not one of the journal, as the list has it.
    pub doi: String,
    /// Final diagnoses in the order of their columns, at most three, without empty ones.
    pub diagnoses: Vec<String>,
    /// Whether a column of diagnoses is empty before one that is not: the first of `diagnoses` may not be the primary one.
    pub diagnosis_gap: bool,
    /// The line of the file, or the row of the sheet, that the article begins on; from 1.
    pub line: u64,
}

/// The prefix of the journal's DOIs.
pub const DOI_PREFIX: &str = "10.12659/AJCR.";

/// Largest list, in bytes, packed and unpacked.
pub const MAX_LIST_BYTES: u64 = 64 << 20;
const MAX_UNPACKED_BYTES: u64 = 256 << 20;
const MAX_ROWS: usize = 200_000;
/// Columns beyond are not looked at.
const MAX_COLUMNS: usize = 256;
/// Digits of an article's number; it has six today.
const MAX_DIGITS: usize = 12;

/// The id of an article, `AJCR937787`, from `10.12659/AJCR.937787`, with `https://doi.org/` or `doi:` before it or without,
/// or from `AJCR937787` itself, in any case. `None` for anything else.
pub fn normalise_id(doi_or_id: &str) -> Option<String> {
    let text = doi_or_id.trim();
    let text =
        ["https://", "http://"].into_iter().find_map(|scheme| after(text, scheme)).map_or(Some(text), |address| {
            ["doi.org/", "dx.doi.org/", "www.doi.org/"].into_iter().find_map(|host| after(address, host))
        })?;
    let text = after(text, "doi:").map_or(text, str::trim_start);
    let digits = after(text, DOI_PREFIX).or_else(|| after(text, "AJCR"))?;
    let is_number = (1..=MAX_DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("AJCR{digits}"))
}

/// The DOI of an article by its id.
pub fn doi_of(ajcr_id: &str) -> Option<String> {
    let id = normalise_id(ajcr_id)?;
    id.strip_prefix("AJCR").map(|digits| format!("{DOI_PREFIX}{digits}"))
}

/// What stands behind a prefix, in any case.
fn after<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Reads a list. `name` is for messages; what the file is, its bytes say.
///
/// # Errors
/// A file that is neither UTF-8 text nor XLSX, is too large, has no column of DOIs, or has one of its columns twice.
pub fn read_list(name: &str, bytes: &[u8]) -> anyhow::Result<Vec<ListedArticle>> {
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_LIST_BYTES) {
        return Err(input(format!("{name} has {} bytes, {MAX_LIST_BYTES} are allowed for a list", bytes.len())));
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return read_workbook(name, bytes);
    }
    if bytes.starts_with(b"\xd0\xcf\x11\xe0") {
        return Err(input(format!("{name} is a workbook of the old format; save it as .xlsx or as CSV in UTF-8")));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        input(format!("{name}:{line}: not UTF-8; save the list as CSV in UTF-8, or as .xlsx"))
    })?;
    if text.contains('\0') {
        return Err(input(format!("{name} is not text; save the list as CSV in UTF-8, or as .xlsx")));
    }
    read_csv(name, text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Where the columns are that are read.
struct Columns {
    doi: usize,
    pmid: Option<usize>,
    diagnoses: [Option<usize>; 3],
}

/// A column's name in lower case, without blanks and punctuation.
fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

impl Columns {
    /// `None` where no column has DOIs.
    ///
    /// # Errors
    /// A column that stands twice.
    fn find(header: &[String]) -> Result<Option<Self>, String> {
        let find = |names: &[&str]| -> Result<Option<usize>, String> {
            let mut found = header.iter().enumerate().filter(|(_, column)| names.contains(&folded(column).as_str()));
            match (found.next(), found.next()) {
                (Some((_, first)), Some((_, second))) => {
                    Err(format!("the columns `{first}` and `{second}` have one meaning"))
                }
                (first, _) => Ok(first.map(|(position, _)| position)),
            }
        };
        let Some(doi) = find(&["doi"])? else { return Ok(None) };
        let pmid = find(&["pmid", "pubmedid"])?;
        let first = find(&["finaldiagnosis", "finaldiagnosis1"])?;
        let diagnoses = [first, find(&["finaldiagnosis2"])?, find(&["finaldiagnosis3"])?];
        Ok(Some(Self { doi, pmid, diagnoses }))
    }

    /// `None` for a row that says nothing in these columns.
    fn article(&self, row: &[String], line: u64) -> Option<ListedArticle> {
        let cell = |column: usize| row.get(column).map(|text| spaced(text)).filter(|text| !is_nothing(text));
        let written = cell(self.doi);
        let pmid = self.pmid.and_then(cell);
        let mut diagnoses = Vec::new();
        let (mut is_empty_before, mut diagnosis_gap) = (false, false);
        for column in self.diagnoses {
            match column.and_then(cell) {
                Some(label) => {
                    diagnosis_gap |= is_empty_before;
                    diagnoses.push(label);
                }
                None => is_empty_before = true,
            }
        }
        if written.is_none() && pmid.is_none() && diagnoses.is_empty() {
            return None;
        }
        let written = written.unwrap_or_default();
        let ajcr_id = normalise_id(&written).unwrap_or_default();
        let doi = doi_of(&ajcr_id).unwrap_or(written);
        let pmid = pmid.as_deref().and_then(whole_number);
        Some(ListedArticle { ajcr_id, pmid, doi, diagnoses, diagnosis_gap, line })
    }
}

/// Any white space as one space.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What stands in tables for an empty cell.
fn is_nothing(text: &str) -> bool {
    let is_word = ["na", "n/a", "#n/a", "nan", "null", "none"].iter().any(|word| text.eq_ignore_ascii_case(word));
    is_word || text.chars().all(|c| matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}'))
}

/// Digits of a whole number, also of one that a spreadsheet wrote as a fraction or with an exponent.
fn whole_number(text: &str) -> Option<String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.to_owned());
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'+' | b'e' | b'E'));
    let number: f64 = text.parse().ok().filter(|_| is_plain)?;
    // Whole numbers of doubles are exact up to here.
    (number > 0.0 && number.fract() == 0.0 && number < 9_007_199_254_740_992.0).then(|| format!("{number:.0}"))
}

fn no_doi(name: &str, header: &[String]) -> anyhow::Error {
    let columns: Vec<&str> = header.iter().map(|column| column.trim()).filter(|column| !column.is_empty()).collect();
    let columns = if columns.is_empty() { "none".to_owned() } else { columns.join(", ") };
    input(format!("{name}: no column is named DOI; the columns found are {columns}"))
}

fn too_long(name: &str) -> anyhow::Error {
    input(format!("{name} has more than the {MAX_ROWS} rows allowed for a list"))
}

/// Text without a byte order mark. The separator is that of the header.
fn read_csv(name: &str, text: &str) -> anyhow::Result<Vec<ListedArticle>> {
    let mut header = None;
    for separator in [b',', b';', b'\t'] {
        let mut rows = Rows::new(text, separator);
        let found = rows.next(name)?.map(|(_, row)| row).unwrap_or_default();
        if Columns::find(&found).map_err(|why| input(format!("{name}: {why}")))?.is_some() {
            header = Some((separator, found));
            break;
        }
        // For the message: the reading with most columns.
        if header.as_ref().is_none_or(|(_, known)| known.len() < found.len()) {
            header = Some((separator, found));
        }
    }
    let (separator, header) = header.unwrap_or((b',', Vec::new()));
    let columns = Columns::find(&header).map_err(|why| input(format!("{name}: {why}")))?;
    let columns = columns.ok_or_else(|| no_doi(name, &header))?;
    if let Some(line) = open_quote(text.as_bytes(), separator) {
        return Err(crate::source::csv::open_quote(name, line));
    }
    let mut rows = Rows::new(text, separator);
    rows.next(name)?;
    let mut articles = Vec::new();
    let mut n_rows = 0;
    while let Some((line, row)) = rows.next(name)? {
        n_rows += 1;
        if n_rows > MAX_ROWS {
            return Err(too_long(name));
        }
        articles.extend(columns.article(&row, line));
    }
    Ok(articles)
}

/// Rows of a text with anything in them.
struct Rows<'a> {
    text: &'a [u8],
    reader: csv::Reader<&'a [u8]>,
    /// The byte up to which lines are counted, and the line that it stands on.
    counted: usize,
    line: u64,
}

impl<'a> Rows<'a> {
    fn new(text: &'a str, separator: u8) -> Self {
        let mut builder = csv::ReaderBuilder::new();
        let reader = builder.delimiter(separator).has_headers(false).flexible(true).from_reader(text.as_bytes());
        Self { text: text.as_bytes(), reader, counted: 0, line: 1 }
    }

    fn next(&mut self, name: &str) -> anyhow::Result<Option<(u64, Vec<String>)>> {
        let mut row = csv::StringRecord::new();
        while self.reader.read_record(&mut row).map_err(|error| input(format!("{name}: {error}")))? {
            if row.iter().any(|cell| !cell.trim().is_empty()) {
                let start = row.position().map_or(0, csv::Position::byte);
                let line = self.line_of(usize::try_from(start).unwrap_or(usize::MAX));
                return Ok(Some((line, row.iter().take(MAX_COLUMNS).map(str::to_owned).collect())));
            }
        }
        Ok(None)
    }

    /// The line of a record. The csv crate counts the end of the line before, and empty lines, to the record itself.
    fn line_of(&mut self, start: usize) -> u64 {
        let rest = self.text.get(start..).unwrap_or_default();
        let start = start.saturating_add(rest.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count());
        let between = self.text.get(self.counted..start).unwrap_or_default();
        self.line += between.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        self.counted = start;
        self.line
    }
}

/// The line of a quote that is never closed.
fn open_quote(bytes: &[u8], separator: u8) -> Option<u64> {
    let (mut line, mut opened) = (1, None);
    let mut at_start = true;
    for byte in bytes {
        match (*byte, opened) {
            (b'"', None) if at_start => opened = Some(line),
            // A doubled quote closes the field and opens it again.
            (b'"', Some(_)) => opened = None,
            _ => {}
        }
        at_start = opened.is_none() && (*byte == separator || matches!(byte, b'\n' | b'\r' | b'"'));
        line += u64::from(*byte == b'\n');
    }
    opened
}

/// An XLSX workbook: its first sheet with a column of DOIs.
fn read_workbook(name: &str, bytes: &[u8]) -> anyhow::Result<Vec<ListedArticle>> {
    let broken = |error: &dyn std::fmt::Display| input(format!("{name}: not a workbook that can be read: {error}"));
    check_unpacked(name, bytes)?;
    let read = || -> anyhow::Result<Vec<ListedArticle>> {
        let mut workbook: Xlsx<_> = calamine::open_workbook_from_rs(Cursor::new(bytes)).map_err(|error| {
            let error: calamine::XlsxError = error;
            broken(&error)
        })?;
        let mut headers = Vec::new();
        // Charts and macros have no cells.
        let sheets = workbook.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
        let sheets: Vec<String> = sheets.map(|sheet| sheet.name.clone()).collect();
        for sheet in sheets {
            let place = || format!("{name}, sheet {sheet}");
            let rows = sheet_rows(&place(), &mut workbook, &sheet)?;
            let mut rows = rows.into_iter().filter(|(_, row)| row.iter().any(|cell| !cell.trim().is_empty()));
            let Some((_, header)) = rows.next() else { continue };
            if let Some(columns) = Columns::find(&header).map_err(|why| input(format!("{}: {why}", place())))? {
                return Ok(rows.filter_map(|(line, row)| columns.article(&row, line)).collect());
            }
            headers.extend(header);
        }
        Err(no_doi(name, &headers))
    };
    catch_panic(Panics::Quiet, read).map_err(|error| match error.downcast_ref::<crate::error::Fault>() {
        Some(_) => error,
        None => broken(&error),
    })
}

/// The cells of a sheet by row, from 1. They are read one by one: a sheet with one cell in its last corner is small.
fn sheet_rows(
    place: &str,
    workbook: &mut Xlsx<Cursor<&[u8]>>,
    sheet: &str,
) -> anyhow::Result<BTreeMap<u64, Vec<String>>> {
    let broken = |error: calamine::XlsxError| input(format!("{place}: {error}"));
    let mut cells = workbook.worksheet_cells_reader(sheet).map_err(broken)?;
    let mut rows: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    while let Some(cell) = cells.next_cell().map_err(broken)? {
        let (row, column) = cell.get_position();
        let (Some(text), Ok(column)) = (cell_text(cell.get_value()), usize::try_from(column)) else { continue };
        if column >= MAX_COLUMNS {
            continue;
        }
        let row = rows.entry(u64::from(row) + 1).or_default();
        if row.len() <= column {
            row.resize(column + 1, String::new());
        }
        if let Some(known) = row.get_mut(column) {
            *known = text;
        }
        if rows.len() > MAX_ROWS {
            return Err(too_long(place));
        }
    }
    Ok(rows)
}

/// `None` for an empty cell and for an error of a formula.
fn cell_text(value: &DataRef<'_>) -> Option<String> {
    match value {
        DataRef::Int(number) => Some(number.to_string()),
        // A whole number is written without a fraction.
        DataRef::Float(number) => Some(number.to_string()),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => Some(text.clone()),
        DataRef::SharedString(text) => Some((*text).to_owned()),
        DataRef::Bool(truth) => Some(truth.to_string()),
        DataRef::DateTime(time) => Some(time.as_f64().to_string()),
        DataRef::Error(_) | DataRef::Empty => None,
    }
}

/// Unpacks every part once, counting: what an archive says of its sizes need not be so.
fn check_unpacked(name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let broken = |error: &dyn std::fmt::Display| input(format!("{name}: not a workbook that can be read: {error}"));
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    let mut left = MAX_UNPACKED_BYTES;
    for position in 0..archive.len() {
        let part = archive.by_index(position).map_err(|error| broken(&error))?;
        let read = std::io::copy(&mut part.take(left + 1), &mut std::io::sink()).map_err(|error| broken(&error))?;
        left = left.checked_sub(read).ok_or_else(|| {
            input(format!("{name} unpacks to more than the {MAX_UNPACKED_BYTES} bytes allowed for a list"))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fmt::Write as _;
    use std::io::Write as _;

    fn shown(articles: &[ListedArticle]) -> String {
        articles.iter().fold(String::new(), |mut text, article| {
            let ListedArticle { ajcr_id, pmid, doi, diagnoses, diagnosis_gap, line } = article;
            let pmid = pmid.as_deref().unwrap_or("none");
            writeln!(text, "{line}: {ajcr_id:?} {doi} pmid {pmid} {diagnoses:?} gap {diagnosis_gap}").unwrap();
            text
        })
    }

    fn list(text: &str) -> String {
        match read_list("cases.csv", text.as_bytes()) {
            Ok(articles) => shown(&articles),
            Err(error) => format!("{error}\n"),
        }
    }

    /// A workbook of sheets, each with a name and the XML of its rows.
    fn workbook(sheets: &[(&str, &str)]) -> Vec<u8> {
        const SPREADSHEET: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
        const DOCUMENT: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006";
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let mut part = |name: &str, text: String| {
            writer.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
        };
        part("[Content_Types].xml", format!("<Types xmlns=\"{PACKAGE}/content-types\"/>"));
        let relation = |id: usize, kind: &str, target: &str| {
            format!("<Relationship Id=\"rId{id}\" Type=\"{DOCUMENT}/{kind}\" Target=\"{target}\"/>")
        };
        let relations =
            |inner: &str| format!("<Relationships xmlns=\"{PACKAGE}/relationships\">{inner}</Relationships>");
        part("_rels/.rels", relations(&relation(1, "officeDocument", "xl/workbook.xml")));
        let (mut names, mut targets) = (String::new(), String::new());
        for (id, (name, rows)) in (1..).zip(sheets) {
            write!(names, "<sheet name=\"{name}\" sheetId=\"{id}\" r:id=\"rId{id}\"/>").unwrap();
            targets += &relation(id, "worksheet", &format!("worksheets/sheet{id}.xml"));
            let sheet = format!("<worksheet xmlns=\"{SPREADSHEET}\"><sheetData>{rows}</sheetData></worksheet>");
            part(&format!("xl/worksheets/sheet{id}.xml"), sheet);
        }
        part(
            "xl/workbook.xml",
            format!("<workbook xmlns=\"{SPREADSHEET}\" xmlns:r=\"{DOCUMENT}\"><sheets>{names}</sheets></workbook>"),
        );
        part("xl/_rels/workbook.xml.rels", relations(&targets));
        writer.finish().unwrap().into_inner()
    }

    fn text_cell(place: &str, text: &str) -> String {
        format!("<c r=\"{place}\" t=\"inlineStr\"><is><t>{text}</t></is></c>")
    }

    #[test]
    fn ids_come_from_dois_of_the_journal_alone() {
        for text in [
            "10.12659/AJCR.937787",
            " 10.12659/ajcr.937787\u{a0}",
            "https://doi.org/10.12659/ajcr.937787",
            "HTTP://DX.DOI.ORG/10.12659/AJCR.937787",
            "doi:10.12659/AJCR.937787",
            "DOI: 10.12659/AJCR.937787",
            "ajcr937787",
        ] {
            assert_eq!(normalise_id(text).as_deref(), Some("AJCR937787"), "{text:?}");
        }
        for text in [
            "",
            "937787",
            "10.12659/AJCR.",
            "10.12659/AJCR.937787.html",
            "10.12659/AJCR.٩٣",
            "10.12659/MSM.937787",
            "https://example.org/10.12659/AJCR.937787",
            "AJCR937787_1",
            "AJCR1234567890123",
            "xAJCR937787",
        ] {
            assert_eq!(normalise_id(text), None, "{text:?}");
        }
    }

    #[test]
    fn columns_are_found_by_name_and_blanks_are_no_diagnoses() {
        expect![[r#"
            2: "AJCR937787" 10.12659/AJCR.937787 pmid 36781234 ["Giant cell arteritis", "Stroke, ischaemic"] gap false
            3: "AJCR900001" 10.12659/AJCR.900001 pmid none ["Sjögren's \"disease\"", "Anaemia"] gap true
            5: "" 10.1001/other pmid 7 ["X"] gap false
            6: "" not yet pmid none [] gap false
            9: "" no DOI pmid none [] gap false
        "#]]
        .assert_eq(&list(
            "\u{feff}Year,pmid ,DOI,Final diagnosis1,\"Final_Diagnosis 2\",final diagnosis3\r\n\
             2023,36781234.0,10.12659/ajcr.937787, Giant cell\u{a0}arteritis,\"Stroke, ischaemic\",NA\r\n\
             2023,,AJCR900001,-,\"Sjögren's\n\"\"disease\"\"\",Anaemia\r\n\
             ,7.0e0,10.1001/other,X,–,n/a\r\n,,not yet\r\n,,,,,\r\n\r\n2020,x,no DOI,,,\r\n2021,,,,,\r\n",
        ));
        let semicolons = list("PMID;DOI;Final diagnosis\n1;10.12659/AJCR.1;A, B\n");
        assert_eq!(semicolons, "2: \"AJCR1\" 10.12659/AJCR.1 pmid 1 [\"A, B\"] gap false\n");
        assert_eq!(list("PMID\tDOI\tFinal diagnosis\n1\t10.12659/AJCR.1\tA, B\n"), semicolons);
    }

    #[test]
    fn lists_without_their_columns_or_form_are_errors() {
        expect![[r"
            cases.csv: no column is named DOI; the columns found are PMID, Digital object, Title
            cases.csv: no column is named DOI; the columns found are none
            cases.csv: the columns `DOI` and `d.o.i.` have one meaning
            cases.csv:2: a quote in the record that begins here is never closed; everything after it would be read as one field
            cases.csv is not text; save the list as CSV in UTF-8, or as .xlsx
        "]]
        .assert_eq(
            &[
                "PMID; Digital object; Title\n1;2;3\n",
                "",
                "DOI,d.o.i.\n",
                "DOI;PMID\n10.12659/AJCR.1;\"2\n10.12659/AJCR.3;4\n",
                "D\0O\0I\0",
            ]
            .map(list)
            .concat(),
        );
        let error = |bytes: &[u8]| read_list("cases", bytes).unwrap_err().to_string();
        assert_eq!(error(b"DOI\nSj\xf6gren\n"), "cases:2: not UTF-8; save the list as CSV in UTF-8, or as .xlsx");
        assert!(error(b"\xd0\xcf\x11\xe0").starts_with("cases is a workbook of the old format"));
        assert!(error(b"PK\x03\x04 cut").starts_with("cases: not a workbook that can be read: "));
        let large = vec![b'x'; usize::try_from(MAX_LIST_BYTES).unwrap() + 1];
        assert_eq!(error(&large), "cases has 67108865 bytes, 67108864 are allowed for a list");
    }

    #[test]
    fn the_first_sheet_with_dois_is_the_list() {
        let header: String = [("A3", "PMID"), ("B3", "DOI"), ("D3", "Final diagnosis1"), ("E3", "Final diagnosis 2")]
            .map(|(place, text)| text_cell(place, text))
            .concat();
        let first = [text_cell("B4", "https://doi.org/10.12659/AJCR.937787"), text_cell("D4", "Giant cell arteritis")];
        // The last corner of a sheet costs one row, not all.
        let rows = format!(
            "<row r=\"3\">{header}</row><row r=\"4\"><c r=\"A4\"><v>36781234</v></c>{}</row>\
             <row r=\"1048576\">{}<c r=\"E1048576\" t=\"e\"><v>#N/A</v></c><c r=\"XFD1048576\"><v>1</v></c></row>",
            first.concat(),
            text_cell("B1048576", "AJCR900001"),
        );
        let notes = format!("<row r=\"1\">{}</row>", text_cell("A1", "Notes"));
        let bytes = workbook(&[("Notes", &notes), ("Cases", &rows)]);
        expect![[r#"
            4: "AJCR937787" 10.12659/AJCR.937787 pmid 36781234 ["Giant cell arteritis"] gap false
            1048576: "AJCR900001" 10.12659/AJCR.900001 pmid none [] gap false
        "#]]
        .assert_eq(&shown(&read_list("cases.xlsx", &bytes).unwrap()));
        let bytes = workbook(&[("Notes", &notes)]);
        assert_eq!(
            read_list("cases.xlsx", &bytes).unwrap_err().to_string(),
            "cases.xlsx: no column is named DOI; the columns found are Notes"
        );
    }

    proptest::proptest! {
        /// Whatever the bytes are, a list is read or refused, and an id that is there has a DOI.
        #[test]
        fn nothing_panics(text in "(DOI[,;\t]PMID\n)?([0-9a-zA-Z./:\",;\t\n é-]{0,12}(AJCR[.]?[0-9]{0,3})?){0,6}") {
            for article in read_list("x", text.as_bytes()).unwrap_or_default() {
                proptest::prop_assert_eq!(doi_of(&article.ajcr_id).is_some(), !article.ajcr_id.is_empty());
            }
        }

        /// A damaged workbook is refused or read, without a panic.
        #[test]
        fn damaged_workbooks_do_not_panic(place in 0usize..2000, byte: u8) {
            let rows = format!("<row r=\"1\">{}</row><row r=\"2\"><c r=\"A2\"><v>1</v></c></row>", text_cell("A1", "DOI"));
            let mut bytes = workbook(&[("Cases", &rows)]);
            let place = place % bytes.len();
            bytes[place] = byte;
            drop(read_list("x.xlsx", &bytes));
        }
    }
}
