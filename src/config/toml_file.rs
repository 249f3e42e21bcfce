//! A TOML file whose every value knows its line, and the problems found in it.

use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One thing wrong with a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// As given on the command line or found from it.
    pub file: String,
    /// From 1; 0 when the whole file is meant.
    pub line: usize,
    /// Dotted path of the key, empty for the whole file.
    pub key: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        if self.line > 0 {
            write!(formatter, ":{}", self.line)?;
        }
        if !self.key.is_empty() {
            write!(formatter, ": {}", self.key)?;
        }
        write!(formatter, ": {}", self.message)
    }
}

/// Everything wrong with a configuration, in file and line order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted.dedup();
        for (position, problem) in sorted.iter().enumerate() {
            if position > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

impl Problems {
    /// The value, unless there are problems.
    pub fn into_result<T>(self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}

/// `; did you mean `x`?` where a known name is near, and the known names.
pub fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let nearest = known.iter().map(|candidate| (strsim::damerau_levenshtein(name, candidate), *candidate)).min();
    let mut text = String::new();
    if let Some((distance, candidate)) = nearest
        && distance <= (candidate.len() / 2).max(2)
    {
        text = format!("; did you mean `{candidate}`?");
    }
    if known.is_empty() { format!("{text} (there are none)") } else { format!("{text} (known: {})", known.join(", ")) }
}

/// Line of a byte offset, from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// One table of a file, read key by key. [`TableReader::finish`] rejects what was not asked for.
pub struct TableReader<'a> {
    file: &'a str,
    text: &'a str,
    path: String,
    span: Range<usize>,
    table: &'a DeTable<'a>,
    asked: Vec<&'static str>,
    problems: &'a mut Problems,
}

/// A value and its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    pub value: T,
    pub line: usize,
}

impl<'a> TableReader<'a> {
    pub fn root(file: &'a str, text: &'a str, table: &'a Spanned<DeTable<'a>>, problems: &'a mut Problems) -> Self {
        Self {
            file,
            text,
            path: String::new(),
            span: table.span(),
            table: table.get_ref(),
            asked: Vec::new(),
            problems,
        }
    }

    fn sub<'b>(&'b mut self, name: &str, span: Range<usize>, table: &'b DeTable<'b>) -> TableReader<'b>
    where
        'a: 'b,
    {
        let path = self.key_path(name);
        TableReader { file: self.file, text: self.text, path, span, table, asked: Vec::new(), problems: self.problems }
    }

    fn key_path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub fn line(&self) -> usize {
        line_of(self.text, self.span.start)
    }

    pub fn problem(&mut self, line: usize, key: &str, message: impl Into<String>) {
        let key = self.key_path(key);
        self.problems.0.push(Problem { file: self.file.to_owned(), line, key, message: message.into() });
    }

    fn entry(&self, key: &str) -> Option<(usize, &'a Spanned<DeValue<'a>>)> {
        let (name, value) = self.table.iter().find(|(name, _)| name.get_ref().as_ref() == key)?;
        Some((line_of(self.text, name.span().start), value))
    }

    fn wrong_type(&mut self, line: usize, key: &str, expected: &str, found: &DeValue<'_>) {
        let message = format!("must be {expected}, not {}", found.type_str());
        self.problem(line, key, message);
    }

    /// An optional value of one type; a value of another type is a problem.
    fn optional<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl Fn(&DeValue<'_>) -> Option<T>,
    ) -> Option<Located<T>> {
        self.asked.push(key);
        let (line, value) = self.entry(key)?;
        let found = read(value.get_ref());
        if found.is_none() {
            self.wrong_type(line, key, expected, value.get_ref());
        }
        found.map(|value| Located { value, line })
    }

    pub fn string(&mut self, key: &'static str) -> Option<Located<String>> {
        self.optional(key, "text", |value| value.as_str().map(str::to_owned))
    }

    pub fn boolean(&mut self, key: &'static str) -> Option<Located<bool>> {
        self.optional(key, "true or false", |value| value.as_bool())
    }

    pub fn share(&mut self, key: &'static str) -> Option<Located<f64>> {
        self.optional(key, "a share between 0.0 and 1.0", |value| {
            number_of(value).filter(|number| (0.0..=1.0).contains(number))
        })
    }

    pub fn number(&mut self, key: &'static str) -> Option<Located<f64>> {
        self.optional(key, "a number", number_of)
    }

    /// A whole number of at least 1; `default` where there is none.
    pub fn positive(&mut self, key: &'static str, default: u32) -> u32 {
        self.optional(key, "a whole number of at least 1", |value| {
            let integer = value.as_integer()?;
            let number = u32::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()?;
            (number > 0).then_some(number)
        })
        .map_or(default, |found| found.value)
    }

    pub fn count(&mut self, key: &'static str) -> Option<Located<u64>> {
        self.optional(key, "a whole number of at least 0", |value| {
            let integer = value.as_integer()?;
            u64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()
        })
    }

    /// A list of texts; one text stands for a list of one.
    pub fn strings(&mut self, key: &'static str) -> Option<Located<Vec<String>>> {
        self.optional(key, "text or a list of texts", strings_of)
    }

    /// A required text; its absence is a problem.
    pub fn required_string(&mut self, key: &'static str) -> Located<String> {
        if let Some(found) = self.string(key) {
            return found;
        }
        let line = self.line();
        if self.entry(key).is_none() {
            self.problem(line, key, "is missing");
        }
        Located { value: String::new(), line }
    }

    /// Reads every sub-table of the table at `key`, with its name, in name order.
    pub fn tables(&mut self, key: &'static str, mut read: impl FnMut(&str, TableReader<'_>)) {
        self.table_at(key, |mut reader| {
            for (name, value) in reader.table {
                let (name_text, line) = (name.get_ref().as_ref(), line_of(reader.text, name.span().start));
                match value.get_ref() {
                    // The name's span is the header's line, which a reader of the message looks for.
                    DeValue::Table(table) => read(name_text, reader.sub(name_text, name.span(), table)),
                    other => reader.wrong_type(line, name_text, "a table", other),
                }
            }
        });
    }

    /// Reads the table at `key`, if it is there.
    pub fn table_at(&mut self, key: &'static str, read: impl FnOnce(TableReader<'_>)) {
        self.asked.push(key);
        if let Some((line, value)) = self.entry(key) {
            match value.get_ref() {
                DeValue::Table(table) => read(self.sub(key, value.span(), table)),
                other => self.wrong_type(line, key, "a table", other),
            }
        }
    }

    /// All entries of this table as text lists, with their lines.
    pub fn all_strings(&mut self) -> Vec<(String, Located<Vec<String>>)> {
        let mut found = Vec::new();
        for (name, value) in self.table {
            let line = line_of(self.text, name.span().start);
            match strings_of(value.get_ref()) {
                Some(list) => found.push((name.get_ref().to_string(), Located { value: list, line })),
                None => self.wrong_type(line, name.get_ref(), "text or a list of texts", value.get_ref()),
            }
        }
        found
    }

    /// All entries of this table as plain values, with their lines.
    pub fn all_values(&mut self) -> Vec<(String, Located<toml::Value>)> {
        let mut found = Vec::new();
        for (name, value) in self.table {
            let line = line_of(self.text, name.span().start);
            let text = self.text.get(value.span()).unwrap_or_default();
            match plain_value(value.get_ref(), text) {
                Some(value) => found.push((name.get_ref().to_string(), Located { value, line })),
                None => self.problem(line, name.get_ref(), "is not a value that can be read"),
            }
        }
        found
    }

    /// Rejects every key that was not asked for.
    pub fn finish(mut self) {
        for (name, _) in self.table {
            let key: &str = name.get_ref();
            if !self.asked.contains(&key) {
                let line = line_of(self.text, name.span().start);
                let message = format!("unknown key{}", suggestion(key, self.asked.iter().copied()));
                self.problem(line, key, message);
            }
        }
    }
}

fn number_of(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().replace('_', "").parse().ok(),
        DeValue::Integer(integer) => {
            Some(i64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()? as f64)
        }
        _ => None,
    }
}

fn strings_of(value: &DeValue<'_>) -> Option<Vec<String>> {
    match value {
        DeValue::String(text) => Some(vec![text.to_string()]),
        DeValue::Array(array) => array.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn plain_value(value: &DeValue<'_>, _text: &str) -> Option<toml::Value> {
    Some(match value {
        DeValue::String(text) => toml::Value::String(text.to_string()),
        DeValue::Integer(integer) => {
            toml::Value::Integer(i64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()?)
        }
        DeValue::Float(float) => toml::Value::Float(float.as_str().replace('_', "").parse().ok()?),
        DeValue::Boolean(boolean) => toml::Value::Boolean(*boolean),
        DeValue::Datetime(datetime) => toml::Value::Datetime(*datetime),
        DeValue::Array(array) => {
            toml::Value::Array(array.iter().map(|item| plain_value(item.get_ref(), "")).collect::<Option<_>>()?)
        }
        DeValue::Table(table) => {
            let mut plain = toml::Table::new();
            for (name, value) in table {
                plain.insert(name.get_ref().to_string(), plain_value(value.get_ref(), "")?);
            }
            toml::Value::Table(plain)
        }
    })
}

/// Parses a file and reads it; syntax errors become a problem with their line.
pub fn read_file<T>(file: &str, text: &str, read: impl FnOnce(TableReader<'_>) -> T) -> Result<T, Problems> {
    let mut problems = Problems::default();
    let document = match DeTable::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let line = error.span().map_or(0, |span| line_of(text, span.start));
            problems.0.push(Problem {
                file: file.to_owned(),
                line,
                key: String::new(),
                message: error.message().to_owned(),
            });
            return Err(problems);
        }
    };
    let value = read(TableReader::root(file, text, &document, &mut problems));
    problems.into_result(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn problems_name_file_line_key_and_the_nearest_name() {
        let text = "name = 3\n\n[nodes.a]\nstagee = 'x'\nmax_loss = 7\n";
        let problems = read_file("p.toml", text, |mut root| {
            let _ = root.string("name");
            root.tables("nodes", |_, mut node| {
                let _ = node.required_string("stage");
                let _ = node.share("max_loss");
                node.finish();
            });
            root.finish();
        })
        .unwrap_err();
        expect![[r#"
            p.toml:1: name: must be text, not integer
            p.toml:3: nodes.a.stage: is missing
            p.toml:4: nodes.a.stagee: unknown key; did you mean `stage`? (known: stage, max_loss)
            p.toml:5: nodes.a.max_loss: must be a share between 0.0 and 1.0, not integer"#]]
        .assert_eq(&problems.to_string());
    }

    #[test]
    fn syntax_errors_have_a_line() {
        let problems = read_file("p.toml", "a = 1\nb = [\n", |_| ()).unwrap_err();
        assert!(problems.to_string().starts_with("p.toml:"), "{problems}");
    }
}
