//! Known faults of other readers (`jats_NN_…`), laws, and the files of a sample where it is there.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn parse(xml: &str) -> Article {
    let article = read(xml.as_bytes(), Limits::default()).unwrap_or_else(|error| panic!("{error}\n{xml}"));
    check_offsets(xml.as_bytes(), &article);
    article
}

fn body(xml: &str) -> Article {
    parse(&format!("<article><body>{xml}</body></article>"))
}

/// The text of the only paragraph.
fn line(xml: &str) -> String {
    let article = body(&format!("<p>{xml}</p>"));
    assert_eq!(article.paragraphs.len(), 1, "{xml}");
    article.paragraphs[0].passage.text.clone()
}

/// Paragraphs, figures, tables and supplements of an article, as a reader would check them.
fn account(article: &Article) -> String {
    let mut text = String::new();
    for (position, paragraph) in article.paragraphs.iter().enumerate() {
        let kind =
            if paragraph.kind == ParagraphKind::Running { String::new() } else { format!(" {:?}", paragraph.kind) };
        let label = paragraph.label.as_deref().map(|label| format!(" <{label}>")).unwrap_or_default();
        let within = paragraph.within.map(|within| format!(" in {within}@{}", paragraph.within_offset.unwrap()));
        let within = within.unwrap_or_default();
        let path = paragraph.section_path.join(" > ");
        writeln!(text, "{position} [{path}]{kind}{label}{within} {:?}", paragraph.passage.text).unwrap();
    }
    let caption = |title: &Option<String>, passages: &[Passage]| {
        let mut parts: Vec<&str> = title.iter().map(String::as_str).collect();
        parts.extend(passages.iter().map(|passage| passage.text.as_str()));
        parts.join(" / ")
    };
    let files = |graphics: &[Graphic]| {
        let show = |graphic: &Graphic| {
            let others: Vec<&str> = std::iter::once(graphic.href.as_deref().unwrap_or("?"))
                .chain(graphic.alternatives.iter().map(String::as_str))
                .collect();
            others.join("|")
        };
        graphics.iter().map(show).collect::<Vec<_>>().join(" ")
    };
    let place = |place: &Place, mentions: &[Anchor]| {
        let mut text = place.paragraph.map(|at| format!(" in {at}@{}", place.text_offset.unwrap())).unwrap_or_default();
        for anchor in mentions {
            let passage = &article.paragraphs[anchor.paragraph as usize].passage.text;
            let span = &passage[anchor.text_start as usize..anchor.text_end as usize];
            write!(text, " mentioned in {} as {span:?}", anchor.paragraph).unwrap();
        }
        text
    };
    for figure in &article.figures {
        let group = caption(&None, &figure.group_caption);
        writeln!(
            text,
            "figure {:?} {:?} caption {:?} group {group:?} files {}{}",
            figure.id.as_deref().unwrap_or("-"),
            figure.label.as_deref().unwrap_or("-"),
            caption(&figure.title, &figure.caption),
            files(&figure.graphics),
            place(&figure.place, &figure.mentions)
        )
        .unwrap();
    }
    for table in &article.tables {
        writeln!(
            text,
            "table {:?} {:?} {}×{} caption {:?} files {}{}",
            table.label.as_deref().unwrap_or("-"),
            table.content,
            table.n_rows,
            table.n_columns,
            caption(&table.title, &table.caption),
            files(&table.graphics),
            place(&table.place, &table.mentions)
        )
        .unwrap();
        for row in table.rows() {
            writeln!(text, "  {}", row.join(" | ")).unwrap();
        }
        for note in &table.footnotes {
            writeln!(text, "  note {:?}", note.text).unwrap();
        }
    }
    for supplement in &article.supplements {
        let caption = caption(&supplement.title, &supplement.caption);
        let place = place(&supplement.place, &supplement.mentions);
        writeln!(text, "supplement {:?} files {}{place}", caption, files(&supplement.files)).unwrap();
    }
    for warning in &article.warnings {
        writeln!(text, "warning line {} {:?}: {}", warning.line, warning.kind, warning.detail).unwrap();
    }
    text
}

fn check(xml: &str, expected: Expect) {
    expected.assert_eq(&account(&parse(xml)));
}

fn check_body(xml: &str, expected: Expect) {
    expected.assert_eq(&account(&body(xml)));
}

#[test]
fn jats_01_words_after_a_marker_stay() {
    let xml = r#"seen in <xref ref-type="fn" rid="a">1</xref>, but not in <xref ref-type="fn" rid="b">2</xref> here."#;
    let article = body(&format!("<p>{xml}</p>"));
    let passage = &article.paragraphs[0].passage;
    assert_eq!(passage.text, "seen in 1, but not in 2 here.");
    // Dropping them is the caller's choice, by their offsets.
    let mut without = passage.text.clone();
    for mention in passage.mentions.iter().rev() {
        without.replace_range(mention.text_start as usize..mention.text_end as usize, "");
    }
    assert_eq!(without.replace("  ", " "), "seen in , but not in here.");
    assert_eq!(
        line("a<sup>2</sup> tail <sub>3</sub> tail <italic>x</italic> tail<!-- c --> end<?pi x?>."),
        "a² tail ₃ tail x tail end."
    );
}

#[test]
fn jats_02_what_stands_in_a_paragraph_is_no_part_of_its_text() {
    check_body(
        r#"<p>First.</p><sec><title>Case</title><p>Rash spread. <fig id="f1"><label>Fig. 1</label><caption><p>Left arm.</p></caption><graphic xlink:href="g1"/></fig>Fever began.</p></sec><p>Last.</p>"#,
        expect![[r#"
            0 [] "First."
            1 [Case] "Rash spread. Fever began."
            2 [] "Last."
            figure "f1" "Fig. 1" caption "Left arm." group "" files g1 in 1@12
        "#]],
    );
    // Whatever stands in it, and without a space around it.
    check_body(
        r#"<p>Before.<boxed-text><caption><title>Box</title></caption><p>Boxed.</p></boxed-text>After.<list><list-item><label>1.</label><p>One <supplementary-material xlink:href="s.avi"><caption><p>Film.</p></caption></supplementary-material>two.</p></list-item></list>Then <disp-quote><p>Quoted.</p></disp-quote> the end<fn><label>*</label><p>Noted.</p></fn>.</p>"#,
        expect![[r#"
            0 [] "Before. After. Then the end."
            1 [Box] BoxedText in 0@7 "Boxed."
            2 [] ListItem <1.> in 0@14 "One two."
            3 [] Quotation in 0@19 "Quoted."
            4 [] Footnote <*> in 0@27 "Noted."
            supplement "Film." files s.avi in 2@3
        "#]],
    );
}

#[test]
fn jats_03_full_section_path() {
    check_body(
        "<sec><title>Case presentation</title><p>A</p><sec><title>Patient <italic>2</italic></title><p>B</p><sec><p>untitled</p></sec><sec><title>Outcome</title><p>C</p></sec></sec><p>D</p></sec>",
        expect![[r#"
            0 [Case presentation] "A"
            1 [Case presentation > Patient 2] "B"
            2 [Case presentation > Patient 2] "untitled"
            3 [Case presentation > Patient 2 > Outcome] "C"
            4 [Case presentation] "D"
        "#]],
    );
}

#[test]
fn jats_04_words_in_reading_order() {
    assert_eq!(
        line("We gave <italic>drug A</italic> then <bold>drug B</bold> and stopped."),
        "We gave drug A then drug B and stopped."
    );
    let article = body("<sec><title>Full text</title><fig/></sec>");
    assert_eq!(article.body, BodyState::WithoutParagraphs);
    assert_eq!(article.warnings[0].kind, WarningKind::BodyWithoutParagraphs);
    assert_eq!(
        body("<sec>Words <bold>without</bold> a paragraph.</sec>").paragraphs[0].passage.text,
        "Words without a paragraph."
    );
    assert_eq!(body("").body, BodyState::Empty);
    assert_eq!(parse("<article><front/></article>").body, BodyState::Missing);
}

#[test]
fn jats_05_a_formula_once() {
    let tex = r"<tex-math>\documentclass[12pt]{minimal}\usepackage{amsmath}\begin{document}$$a\le 3$$\end{document}</tex-math>";
    let math = "<mml:math><mml:mi>a</mml:mi><mml:mo>≤</mml:mo><mml:mn>3</mml:mn></mml:math>";
    for (xml, expected) in [
        (format!("Score <inline-formula><alternatives>{tex}{math}</alternatives></inline-formula> at entry."), r"Score a\le 3 at entry."),
        (format!("Score <inline-formula>{tex}{math}</inline-formula> at entry."), r"Score a\le 3 at entry."),
        (format!("Score <inline-formula>{math}</inline-formula> at entry."), "Score a ≤ 3 at entry."),
        (format!("Score {math} at entry."), "Score a ≤ 3 at entry."),
        ("Score <inline-formula><tex-math>a &lt; 3</tex-math></inline-formula> at entry.".into(), "Score a < 3 at entry."),
        ("Score <inline-formula><alternatives><tex-math/><inline-graphic xlink:href=\"e1\"/><textual-form>a≤3</textual-form></alternatives></inline-formula> at entry.".into(), "Score a≤3 at entry."),
        ("Score <inline-formula><italic>a</italic> = 3</inline-formula> at entry.".into(), "Score a = 3 at entry."),
        ("Score<disp-formula><label>(1)</label><mml:math><mml:mfrac><mml:mrow><mml:mi>a</mml:mi><mml:mo>+</mml:mo><mml:mn>1</mml:mn></mml:mrow><mml:mn>2</mml:mn></mml:mfrac></mml:math></disp-formula>at entry.".into(), "Score (a+1)/2 at entry."),
        ("<mml:math><mml:msup><mml:mn>10</mml:mn><mml:mn>9</mml:mn></mml:msup><mml:mn>5</mml:mn></mml:math>".into(), "10⁹5"),
        ("<mml:math><mml:mn>3</mml:mn><mml:mn>5</mml:mn><mml:mover><mml:mi>x</mml:mi><mml:mo>¯</mml:mo></mml:mover></mml:math>".into(), "3 5x\u{304}"),
        ("<mml:math><mml:semantics><mml:mi>x</mml:mi><mml:annotation>\\usepackage</mml:annotation></mml:semantics></mml:math>".into(), "x"),
    ] {
        assert_eq!(line(&xml), expected, "{xml}");
    }
    let article = body(r#"<p>Score <inline-formula><inline-graphic xlink:href="e1"/></inline-formula> at entry.</p>"#);
    assert_eq!(article.paragraphs[0].passage.text, "Score [formula] at entry.");
    assert_eq!(article.loose_graphics[0].graphic.href.as_deref(), Some("e1"));
    assert_eq!(article.warnings[0].kind, WarningKind::FormulaWithoutText);
}

#[test]
fn numbers_stay_right() {
    for (xml, expected) in [
        ("10<sup>9</sup>/L", "10⁹/L"),
        ("10<sup>&#x2212;3</sup>", "10⁻³"),
        ("10<sup><italic>9</italic></sup>", "10⁹"),
        ("1.2 × 10<sup>3</sup>5", "1.2 × 10³5"),
        ("Ca<sup>2+</sup>", "Ca²⁺"),
        ("<sup>99m</sup>Tc", "⁹⁹ᵐTc"),
        ("1<sup>st</sup> day", "1st day"),
        ("37<sup>o</sup>C", "37ºC"),
        ("x<sup>A</sup> and y<sup>ab</sup>", "x^A and y^(ab)"),
        ("CO<sub>2</sub>, HbA<sub>1c</sub>, C<sub>max</sub>", "CO₂, HbA₁c, Cmax"),
        ("LigaSure<sup>&#x00ae;</sup>", "LigaSure®"),
        // Markers of citations and notes.
        ("5 mg<sup><xref ref-type=\"bibr\" rid=\"r\">12</xref></sup> daily", "5 mg[12] daily"),
        ("5 mg<xref ref-type=\"bibr\" rid=\"r\"><sup>12</sup></xref> daily", "5 mg[12] daily"),
        ("5<xref ref-type=\"bibr\" rid=\"r\">12</xref> mg", "5[12] mg"),
        ("dose <xref ref-type=\"bibr\" rid=\"r\">12</xref>5 mg", "dose [12]5 mg"),
        ("dose [<xref ref-type=\"bibr\" rid=\"r\">12</xref>]", "dose [12]"),
        (
            "dose<sup>[<xref ref-type=\"bibr\" rid=\"r\">1</xref>,<xref ref-type=\"bibr\" rid=\"r\">2</xref>]</sup>",
            "dose[1,2]",
        ),
        ("5<sup><xref ref-type=\"bibr\" rid=\"r\">1</xref><xref ref-type=\"bibr\" rid=\"q\">2</xref></sup>", "5[1,2]"),
        (
            "5<sup><xref ref-type=\"bibr\" rid=\"r\">1</xref></sup><sup><xref ref-type=\"bibr\" rid=\"q\">2</xref></sup>",
            "5[1][2]",
        ),
        ("dose.[<xref ref-type=\"bibr\" rid=\"r\">3</xref><xref ref-type=\"bibr\" rid=\"q\">4</xref>]", "dose.[3,4]"),
        ("5<xref ref-type=\"bibr\" rid=\"r\">1</xref><xref ref-type=\"bibr\" rid=\"q\">2</xref> mg", "5[1][2] mg"),
        ("Doe<sup>1,2</sup>", "Doe^(1,2)"),
        ("(Figure<xref ref-type=\"fig\" rid=\"f\">1</xref>)", "(Figure1)"),
        ("name<xref ref-type=\"corresp\" rid=\"c\"><sup>*</sup></xref>", "name*"),
    ] {
        assert_eq!(line(xml), expected, "{xml}");
    }
}

#[test]
fn jats_07_tables_are_grids() {
    check_body(
        r#"<p>Labs: <table-wrap><label>Table 1</label><caption><title>Labs</title><p>On day 1.</p></caption><table><tr><th rowspan="3">Na</th><td>12</td><td>7</td></tr></table><table-wrap-foot><fn><label>a</label><p>Low.</p></fn></table-wrap-foot></table-wrap> then discharge.</p><table-wrap><label>Table 2</label><graphic xlink:href="t2"/></table-wrap>"#,
        expect![[r#"
            0 [] "Labs: then discharge."
            table "Table 1" Grid 1×3 caption "Labs / On day 1." files  in 0@5
              Na | 12 | 7
              note "a Low."
            table "Table 2" Image 0×0 caption "" files t2
        "#]],
    );
    check_body(
        r#"<table-wrap><alternatives><graphic xlink:href="t3"/><table><thead><tr><th rowspan="2">Test</th><th colspan="2">Day</th></tr><tr><th>1</th><th>2</th></tr></thead><tbody><tr><td>Na<break/>K</td><td rowspan="9">7</td><td>8</td></tr><tr><td>Cl</td><td>9</td><td>10</td></tr></tbody></table></alternatives></table-wrap>"#,
        expect![[r#"
            table "-" Grid 4×4 caption "" files t3
              Test | Day | Day
              Test | 1 | 2
              Na K | 7 | 8
              Cl | 7 | 9 | 10
            warning line 1 BodyWithoutParagraphs: the body has elements, but no paragraph with words
        "#]],
    );
    // Only a header; CALS; two grids in one wrap.
    check_body(
        r#"<table-wrap id="t"><table><thead><tr><th>Only</th><th>head</th></tr></thead></table><oasis:table><oasis:tgroup cols="3"><oasis:colspec colname="c1"/><oasis:colspec colname="c2"/><oasis:colspec colname="c3"/><oasis:tbody><oasis:row><oasis:entry namest="c1" nameend="c2">wide</oasis:entry><oasis:entry morerows="1">tall</oasis:entry></oasis:row><oasis:row><oasis:entry colname="c2">b</oasis:entry></oasis:row></oasis:tbody></oasis:tgroup></oasis:table></table-wrap>"#,
        expect![[r#"
            table "-" Grid 1×2 caption "" files 
              Only | head
            table "-" Grid 2×3 caption "" files 
              wide | wide | tall
               | b | tall
            warning line 1 BodyWithoutParagraphs: the body has elements, but no paragraph with words
        "#]],
    );
    let article = body(
        r#"<table-wrap><table><tr><th colspan="2">A|B</th></tr><tr><td>1</td><td>2</td></tr></table></table-wrap>"#,
    );
    expect![[r#"
        | A\|B | A\|B |
        | --- | --- |
        | 1 | 2 |
    "#]]
    .assert_eq(&article.tables[0].to_markdown());
    assert_eq!(article.tables[0].to_text(), "A|B\n1\t2");
}

#[test]
fn spans_of_a_table_have_a_limit() {
    let row = r#"<tr><td rowspan="65000" colspan="99999">x</td></tr>"#;
    let article = body(&format!("<table-wrap><table>{}</table></table-wrap>", row.repeat(2000)));
    assert_eq!(article.warnings[0].kind, WarningKind::TableSpans);
    assert_eq!((article.tables[0].n_rows, article.tables[0].n_columns), (2000, 1));
}

/// Small files that ask for much work or memory.
#[test]
fn work_grows_with_the_file_alone() {
    for (before, after) in [
        ("<sup>", "</sup>"),
        ("<sub>", "</sub>"),
        ("<xref rid=\"a\">1", "</xref>"),
        ("<xref><sup>1", "</sup></xref>"),
        ("<mml:math><mml:msup><mml:mi>x</mml:mi>", "</mml:msup></mml:math>"),
        ("<alternatives>", "</alternatives>"),
        ("<inline-formula><alternatives>", "</alternatives></inline-formula>"),
        ("<abbrev>a<def><p>", "</p></def></abbrev>"),
        ("<list><list-item><p>", "</p></list-item></list>"),
        ("<fig><caption><p>", "</p></caption></fig>"),
        ("<boxed-text><sec><p>", "</p></sec></boxed-text>"),
        ("<table-wrap><table><tr><td>", "</td></tr></table></table-wrap>"),
    ] {
        let n = 120 / before.matches('<').count();
        let article = body(&format!("<p>{}x{}</p>", before.repeat(n), after.repeat(n)));
        assert!(!article.paragraphs.is_empty(), "{before}");
    }
    let title = "t".repeat(100_000);
    for xml in [
        format!("<sec><title>{title}</title>{}</sec>", "<p/>".repeat(10_000)),
        format!("<fig-group><caption><p>{title}</p></caption>{}</fig-group>", "<fig/>".repeat(10_000)),
        format!("<table-wrap><caption><p>{title}</p></caption>{}</table-wrap>", "<table/>".repeat(10_000)),
    ] {
        let error = read(format!("<article><body>{xml}</body></article>").as_bytes(), Limits::default()).unwrap_err();
        assert_eq!(error.fault, JatsFault::TooLarge);
    }
    let cells = "<td rowspan=\"9999\"/>".repeat(2000);
    let article =
        body(&format!("<table-wrap><table><tr>{cells}</tr>{}</table></table-wrap>", "<tr><td/></tr>".repeat(20_000)));
    assert_eq!(article.warnings[0].kind, WarningKind::TableSpans);
    let dates = "<pub-date><month>13</month></pub-date>".repeat(50_000);
    let article = parse(&format!("<article><front><article-meta>{dates}</article-meta></front></article>"));
    assert_eq!((article.dates.len(), article.warnings.len()), (50_000, 100));
}

#[test]
fn jats_08_figures_wherever_they_are() {
    check(
        r#"<article><body><p>See <xref ref-type="fig" rid="f9">Figure 9</xref> and <xref ref-type="table" rid="t1">Table 1</xref>, <xref ref-type="fig" rid="f8 f9"/>.</p></body><back><app-group><app><title>Appendix</title><p>More.</p><fig id="f8"><graphic xlink:href="i8"/></fig></app></app-group></back><floats-group><fig id="f9"><caption><p>Chest film.</p></caption><graphic xlink:href="i9"/></fig><table-wrap id="t1"><table><tr><td>1</td></tr></table></table-wrap></floats-group></article>"#,
        expect![[r#"
            0 [] "See Figure 9 and Table 1, ."
            1 [Appendix] "More."
            figure "f8" "-" caption "" group "" files i8 mentioned in 0 as ""
            figure "f9" "-" caption "Chest film." group "" files i9 mentioned in 0 as "Figure 9" mentioned in 0 as ""
            table "-" Grid 1×1 caption "" files  mentioned in 0 as "Table 1"
              1
        "#]],
    );
}

#[test]
fn jats_09_figures_without_label_and_with_many_graphics() {
    check_body(
        r#"<fig-group id="g"><caption><p>Both eyes.</p></caption><fig id="a"><graphic xlink:href="a1"/><graphic xlink:href="a2"/></fig><fig id="b"><label>B</label><alternatives><graphic xlink:href="b.tif"/><graphic xlink:href="b.jpg"/></alternatives></fig></fig-group><fig/><fig-group><graphic xlink:href="own"/></fig-group><media xlink:href="v.avi" mimetype="video" mime-subtype="avi"/>"#,
        expect![[r#"
            figure "a" "-" caption "" group "Both eyes." files a1 a2
            figure "b" "B" caption "" group "Both eyes." files b.tif|b.jpg
            figure "-" "-" caption "" group "" files 
            figure "-" "-" caption "" group "" files own
            supplement "" files v.avi
            warning line 1 BodyWithoutParagraphs: the body has elements, but no paragraph with words
        "#]],
    );
}

#[test]
fn jats_11_the_real_abstract() {
    let show = |xml: &str| {
        let article = parse(&format!("<article><front><article-meta>{xml}</article-meta></front></article>"));
        let mut text = format!("{:?}", article.abstract_state);
        for found in &article.abstracts {
            let kind = found.abstract_type.as_deref().unwrap_or("-");
            write!(text, "\n{kind} {}:", found.language.as_deref().unwrap_or("-")).unwrap();
            for paragraph in &found.paragraphs {
                write!(text, " [{}] {}", paragraph.section_path.join(" > "), paragraph.passage.text).unwrap();
            }
        }
        let main = article.main_abstract.map(|main| &article.abstracts[main as usize]);
        text + &format!("\nmain: {}\n", main.map_or("none", |main| main.paragraphs[0].passage.text.as_str()))
    };
    let picture =
        r#"<abstract abstract-type="graphical"><p><fig id="g"><caption><p>Picture.</p></caption></fig></p></abstract>"#;
    let french = r#"<trans-abstract xml:lang="fr"><p>Texte.</p></trans-abstract>"#;
    let all = show(&format!("{picture}<abstract><p>Real text.</p></abstract>{french}"))
        + &show(&format!("{picture}{french}"))
        + &show("")
        + &show("<abstract><p/></abstract>")
        + &show(
            "<abstract abstract-type=\"author-highlights\"><p>High.</p></abstract><abstract><sec><title>Background</title><p>One.</p></sec><sec><title>Case</title><p>Two.</p></sec></abstract>",
        );
    expect![[r#"
        Present
        graphical -:
        - -: [] Real text.
        - fr: [] Texte.
        main: Real text.
        OtherKindsOnly
        graphical -:
        - fr: [] Texte.
        main: none
        Missing
        main: none
        Empty
        - -:
        main: none
        Present
        author-highlights -: [] High.
        - -: [Background] One. [Case] Two.
        main: One.
    "#]]
    .assert_eq(&all);
}

#[test]
fn jats_13_entities() {
    check(
        "<!DOCTYPE article [<!ENTITY deg2 \"°\">]><article><body><p>38&deg2;C, &alpha;-blocker, 3&#x02013;5 days, <![CDATA[a & b]]></p></body></article>",
        expect![[r#"
            0 [] "38°C, α-blocker, 3–5 days, a & b"
        "#]],
    );
    // Markup and references within entities, parameter entities, an external one, one that nobody knows.
    check(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!DOCTYPE article PUBLIC \"-//NLM//DTD [x]\" \"a.dtd\" [\n<!-- <!ENTITY no \"no\"> -->\n<!ENTITY % more '<!ENTITY in \"inside\">'>%more;%gone;\n<!ENTITY out SYSTEM \"file:///etc/passwd\">\n<!ENTITY drug \"<italic>&in; &#38;lt; &agr;</italic>\"><!ENTITY in \"second\">\n]>\n<article><body><p>x &drug; y</p>\n<p>[&out;] [&never;]</p></body></article>",
        expect![[r#"
            0 [] "x inside < α y"
            1 [] "[�] [�]"
            warning line 9 UnknownEntity: the entity &out; is declared by an address, which is not fetched
            warning line 9 UnknownEntity: the entity &never; is not known
            warning line 2 SubsetIgnored: the parameter entity %gone; is not in this file
        "#]],
    );
}

#[test]
fn ids_dates_people_and_the_rest_of_the_front() {
    let article = parse(
        r#"<article article-type="case-report" xml:lang="en"><front><journal-meta><journal-id journal-id-type="nlm-ta">J Test</journal-id><journal-title-group><journal-title>Journal of Tests</journal-title></journal-title-group><issn>1234-5678</issn></journal-meta><article-meta>
<article-id pub-id-type="pmc">4735894.2</article-id><article-id pub-id-type="pmcid">PMC4735895</article-id><article-id pub-id-type="doi">https://doi.org/10.1/x</article-id><article-id pub-id-type="pmid">77</article-id>
<title-group><article-title>A <italic>rare</italic> case<xref ref-type="fn" rid="x">*</xref></article-title></title-group>
<contrib-group><contrib contrib-type="author"><contrib-id contrib-id-type="orcid">https://orcid.org/0000-0001-0000-0000</contrib-id><name><surname>Doe</surname><given-names>J M</given-names></name><xref ref-type="aff" rid="a1"/><xref ref-type="corresp" rid="c"/></contrib><contrib><collab>The Group</collab></contrib></contrib-group><aff id="a1"><label>1</label>Ward 1, <city>Town</city></aff>
<pub-date pub-type="epub"><day>3</day><month>1</month><year>2016</year></pub-date><pub-date date-type="pub" publication-format="print" iso-8601-date="2016-02-05"/><pub-date pub-type="ppub"><season>Spring</season><year>2016</year></pub-date><pub-date><string-date>March <year>2017</year></string-date></pub-date><pub-date><month>Feb</month><day>30</day><year>2017</year></pub-date><pub-history><event event-type="preprint"><date><year>2015</year></date></event></pub-history>
<kwd-group><kwd>one</kwd><kwd>two</kwd></kwd-group></article-meta></front></article>"#,
    );
    let mut text = format!(
        "{:?} {:?} v{:?} {:?} {:?}\n{:?}\n",
        article.title, article.ids.pmcid, article.ids.pmcid_version, article.ids.pmid, article.ids.doi, article.journal
    );
    for contributor in &article.contributors {
        writeln!(text, "{contributor:?}").unwrap();
    }
    for date in &article.dates {
        writeln!(text, "{:?} {:?} {:?} {:?}", date.date_type, date.iso, date.season, date.stated).unwrap();
    }
    for warning in &article.warnings {
        writeln!(text, "{:?} {}", warning.kind, warning.detail).unwrap();
    }
    writeln!(text, "{:?}", article.keywords.iter().map(|keyword| keyword.text.as_str()).collect::<Vec<_>>()).unwrap();
    expect![[r#"
        Some("A rare case*") Some("PMC4735895") vNone Some("77") Some("10.1/x")
        Journal { title: Some("Journal of Tests"), nlm_title: Some("J Test"), iso_title: None, publisher: None, issns: ["1234-5678"], volume: None, issue: None, first_page: None, last_page: None, elocation_id: None }
        Contributor { contrib_type: Some("author"), surname: Some("Doe"), given_names: Some("J M"), suffix: None, collab: None, orcid: Some("0000-0001-0000-0000"), is_corresponding: true, affiliations: ["Ward 1, Town"] }
        Contributor { contrib_type: None, surname: None, given_names: None, suffix: None, collab: Some("The Group"), orcid: None, is_corresponding: false, affiliations: [] }
        Some("epub") Some("2016-01-03") None "3 1 2016"
        Some("pub") Some("2016-02-05") None ""
        Some("ppub") Some("2016") Some("Spring") "Spring 2016"
        None Some("2017") None "March 2017"
        None Some("2017-02") None "Feb 30 2017"
        Some("preprint") Some("2015") None "2015"
        Date `Feb 30 2017` is no date
        IdConflict the PMC id is `PMC4735895` and `PMC4735894`; the first counts
        ["one", "two"]
    "#]].assert_eq(&text);
    // Every spelling of the same id.
    for (id_type, value) in
        [("pmc", "123"), ("pmcid", "PMC123"), ("pmcid", "123"), ("pmc-uid", "123"), ("pmcid-ver", "PMC123.1")]
    {
        let xml = format!(
            "<article><front><article-meta><article-id pub-id-type=\"{id_type}\">{value}</article-id></article-meta></front></article>"
        );
        assert_eq!(parse(&xml).ids.pmcid.as_deref(), Some("PMC123"), "{id_type} {value}");
    }
}

#[test]
fn licences_come_from_permissions_alone() {
    let show = |permissions: &str| {
        let article = parse(&format!(
            "<article><front><article-meta>{permissions}</article-meta></front><body><p>We used a CC BY-NC-ND image, <ext-link xlink:href=\"http://creativecommons.org/licenses/by-nc-nd/4.0\"/>.</p></body></article>"
        ));
        let permissions = article.permissions;
        format!("{:?} disagreement {}\n", permissions.license, permissions.is_disagreement)
    };
    let text = show("")
        + &show(
            r#"<permissions><license xlink:href="https://publisher.example/terms"><license-p>Open access, <ext-link xlink:href="http://creativecommons.org/licenses/by/4.0/">CC</ext-link>.</license-p></license></permissions>"#,
        )
        + &show(
            r#"<permissions><license license-type="open-access"><ali:license_ref>https://creativecommons.org/licenses/by-nc/4.0/</ali:license_ref><license-p>Under the Creative Commons Attribution License.</license-p></license></permissions>"#,
        )
        + &show(
            r#"<permissions><license><license-p>The authors dedicate this to the public domain: CC0.</license-p></license></permissions>"#,
        )
        + &show(r#"<permissions><copyright-statement>All rights reserved.</copyright-statement></permissions>"#);
    expect![[r#"
        License { family: Unknown, non_commercial: false, no_derivatives: false, share_alike: false, version: None } disagreement false
        License { family: CcBy, non_commercial: false, no_derivatives: false, share_alike: false, version: Some("4.0") } disagreement false
        License { family: CcBy, non_commercial: true, no_derivatives: false, share_alike: false, version: Some("4.0") } disagreement true
        License { family: Cc0, non_commercial: false, no_derivatives: false, share_alike: false, version: None } disagreement false
        License { family: Reserved, non_commercial: false, no_derivatives: false, share_alike: false, version: None } disagreement false
    "#]].assert_eq(&text);
}

#[test]
fn pmc_07_retracted_is_not_a_notice_and_an_erratum_is_neither() {
    let state = |article_type: &str, title: &str, link: &str| {
        let link =
            if link.is_empty() { String::new() } else { format!("<related-article related-article-type=\"{link}\"/>") };
        let xml = format!(
            "<article article-type=\"{article_type}\"><front><article-meta><title-group><article-title>{title}</article-title></title-group>{link}</article-meta></front></article>"
        );
        parse(&xml).editorial
    };
    use EditorialState::*;
    for (article_type, title, link, expected) in [
        ("case-report", "A case of X", "", Standing),
        ("research-article", "Retraction: A case of X", "", RetractionNotice),
        ("retraction", "A case of X", "retracted-article", RetractionNotice),
        ("case-report", "RETRACTED: A case of X", "", Retracted),
        ("case-report", "A case of X", "retraction-forward", Retracted),
        ("case-report", "A case of X", "corrected-article", Corrected),
        ("case-report", "A case of X", "correction-forward", Corrected),
        ("correction", "Erratum to: A case of X", "corrected-article", CorrectionNotice),
        ("case-report", "A case of X", "concern-forward", OfConcern),
        ("expression-of-concern", "A case of X", "object-of-concern", ConcernNotice),
        ("case-report", "Retraction of the upper eyelid in a child", "", Standing),
        ("case-report", "A case of X", "commentary-article", Standing),
    ] {
        assert_eq!(state(article_type, title, link), expected, "{article_type} {title} {link}");
    }
}

#[test]
fn references_and_definitions() {
    let article = parse(
        r#"<article><body><p>A <abbrev>CT<def><p>computed tomography</p></def></abbrev> scan.</p></body><back><glossary><title>Abbreviations</title><def-list><def-item><term>MRI</term><def><p>magnetic resonance imaging</p></def></def-item></def-list></glossary><ref-list><ref id="B1"><label>1</label><element-citation publication-type="journal"><person-group person-group-type="author"><name><surname>Doe</surname><given-names>J</given-names></name><etal/></person-group><article-title>On <sup>18</sup>F</article-title><source>J Test</source><year>2001</year><volume>2</volume><fpage>3</fpage><lpage>4</lpage><pub-id pub-id-type="pmid">5</pub-id><pub-id pub-id-type="doi">10.1/y</pub-id></element-citation></ref><ref id="B2"><mixed-citation>Roe, <source>Book</source>, <year>1999</year>.</mixed-citation></ref><ref id="B3"><note><p>Personal note.</p></note></ref></ref-list></back></article>"#,
    );
    let mut text = account(&article);
    for definition in &article.definitions {
        writeln!(text, "{} = {}", definition.term, definition.text).unwrap();
    }
    for reference in &article.references {
        writeln!(
            text,
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} | {}",
            reference.id,
            reference.authors,
            reference.has_more_authors,
            reference.title,
            reference.source,
            reference.pmid,
            reference.doi,
            reference.text
        )
        .unwrap();
    }
    expect![[r#"
        0 [] "A CT scan."
        1 [] Definition <CT> in 0@4 "computed tomography"
        2 [Abbreviations] Definition <MRI> "magnetic resonance imaging"
        CT = computed tomography
        MRI = magnetic resonance imaging
        Some("B1") ["Doe J"] true Some("On ¹⁸F") Some("J Test") Some("5") Some("10.1/y") | Doe J On ¹⁸F J Test 2001 2 3 4 5 10.1/y
        Some("B2") [] false None Some("Book") None None | Roe, Book, 1999.
        Some("B3") [] false None None None None | Personal note.
    "#]].assert_eq(&text);
}

#[test]
fn an_article_is_a_row() {
    let article = parse(&article_of(&PIECES.concat()));
    let row = serde_json::to_value(&article).unwrap();
    assert_eq!(serde_json::from_value::<Article>(row).unwrap(), article);
    let schema = serde_json::to_string(&schemars::schema_for!(Article)).unwrap();
    assert!(schema.contains("section_path") && !schema.contains("anyOf\":[{\"type\":\"object"));
}

#[test]
fn sub_articles_are_apart() {
    let article = parse(
        r#"<article><body><p>Main.</p></body><sub-article article-type="translation" xml:lang="fr"><front-stub><title-group><article-title>Titre</article-title></title-group></front-stub><body><p>Principal.</p></body></sub-article><response><front-stub/><body><p>Reply.</p></body></response></article>"#,
    );
    let of = |index: Option<u32>| -> Vec<&str> {
        let paragraphs = article.paragraphs.iter().filter(|paragraph| paragraph.sub_article == index);
        paragraphs.map(|paragraph| paragraph.passage.text.as_str()).collect()
    };
    assert_eq!((of(None), of(Some(0)), of(Some(1))), (vec!["Main."], vec!["Principal."], vec!["Reply."]));
    let kinds: Vec<SubArticleKind> = article.sub_articles.iter().map(|part| part.kind).collect();
    assert_eq!(kinds, [SubArticleKind::Translation, SubArticleKind::Response]);
    assert!(article.paragraphs.iter().filter(|paragraph| paragraph.region == Region::Body).count() == 1);
}

#[test]
fn faults_are_named() {
    let deep = format!("<article>{}{}</article>", "<sec>".repeat(200), "</sec>".repeat(200));
    let mut bomb = String::from("<!DOCTYPE article [<!ENTITY a0 \"<b/>aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\">");
    for level in 1..12 {
        write!(bomb, "<!ENTITY a{level} \"{}\">", format!("&a{};", level - 1).repeat(10)).unwrap();
    }
    bomb += "]><article><body><p>&a11;</p></body></article>";
    let looped =
        "<!DOCTYPE article [<!ENTITY a \"&b;\"><!ENTITY b \"&a;\">]><article><body><p>&a;</p></body></article>";
    let mut text = String::new();
    for xml in [
        "",
        "no XML",
        "<article>\n<body>\n<p>x</sec></body></article>",
        "<article>\n<body>",
        "<article><body><p>&amp</p></body></article>",
        "<article/><article/>",
        "<html><body><article><p>x</p></article></body></html>",
        "<set><article/><article/></set>",
        "<article a=\"1\" a=\"2\"/>",
        "<article><p>&#0;</p></article>",
        "<!DOCTYPE article [<!ENTITY a \"</p>\">]><article><body><p>&a;</body></article>",
        deep.as_str(),
        bomb.as_str(),
        looped,
        "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><article><p>é</p></article>",
    ] {
        match read(xml.as_bytes(), Limits::default()) {
            Ok(_) => writeln!(text, "ok").unwrap(),
            Err(error) => writeln!(text, "{:?}: {error}", error.fault).unwrap(),
        }
    }
    for bytes in [&b"\xff\xfe<\0a\0"[..], b"<article>\n\xff</article>"] {
        let error = read(bytes, Limits::default()).unwrap_err();
        writeln!(text, "{:?}: {error}", error.fault).unwrap();
    }
    let small = Limits { max_bytes: 10, ..Limits::default() };
    let error = read(b"<article></article>", small).unwrap_err();
    writeln!(text, "{:?}: {error}", error.fault).unwrap();
    expect![[r#"
        NotXml: line 1, byte 0: there is no element
        NotXml: line 1, byte 0: text stands outside of the root element
        NotXml: line 3, byte 21: ill-formed document: expected `</p>`, but `</sec>` was found
        NotXml: line 2, byte 10: an element is not closed
        NotXml: line 1, byte 18: ill-formed document: entity or character reference not closed: `;` not found before end of input
        NotXml: line 1, byte 10: a second root element
        NotArticle: line 1, byte 0: the XML holds no element `article`
        SeveralArticles: line 1, byte 15: there are 2 articles; one is expected
        NotXml: line 1, byte 0: attributes: position 7: duplicated attribute, previous declaration at position 1
        NotXml: line 1, byte 12: &#0; is no character of XML
        NotXml: line 1, byte 57: ill-formed document: close tag `</p>` does not match any open tag
        TooDeep: line 1, byte 644: elements are nested deeper than 128
        EntityLimit: line 1, byte 715: entities grow beyond 1048576 bytes
        EntityLimit: line 1, byte 73: the entity &a; contains others deeper than 16, or itself
        Encoding: line 1, byte 0: the encoding iso-8859-1 is declared; UTF-8 is expected
        Encoding: line 1, byte 0: the file is UTF-16; UTF-8 is expected
        Encoding: line 2, byte 10: this byte is not UTF-8
        TooLarge: line 1, byte 0: the file has 19 bytes, more than the 10 allowed
    "#]].assert_eq(&text);
    let marked = "\u{feff}<article><body><p>after a mark</p></body></article>";
    assert_eq!(parse(marked).paragraphs[0].passage.text, "after a mark");
}

/// Every run of every passage points at the bytes that it says.
fn check_offsets(file: &[u8], article: &Article) {
    let mut passages: Vec<&Passage> = article.paragraphs.iter().map(|paragraph| &paragraph.passage).collect();
    passages.extend(article.abstracts.iter().flat_map(|found| &found.paragraphs).map(|paragraph| &paragraph.passage));
    passages.extend(article.figures.iter().flat_map(|figure| figure.caption.iter().chain(&figure.group_caption)));
    passages.extend(article.tables.iter().flat_map(|table| table.caption.iter().chain(&table.footnotes)));
    passages.extend(article.supplements.iter().flat_map(|supplement| &supplement.caption));
    for passage in passages {
        let mut expected_start = 0;
        for (position, run) in passage.runs.iter().enumerate() {
            assert_eq!(run.text_start as usize, expected_start, "runs have no gap");
            let end = passage.runs.get(position + 1).map_or(passage.text.len(), |next| next.text_start as usize);
            assert!(end > expected_start, "no run is empty");
            let text = &passage.text[expected_start..end];
            let source = &file[run.byte_start as usize..(run.byte_start + run.byte_length) as usize];
            match run.kind {
                RunKind::Verbatim => {
                    let source = std::str::from_utf8(source).unwrap().replace(['\n', '\t', '\r'], " ");
                    assert_eq!(source, text);
                }
                RunKind::Replaced => assert!(!source.is_empty()),
                RunKind::Inserted => assert!(source.is_empty()),
            }
            if run.kind != RunKind::Inserted {
                let source = run.byte_start as usize..(run.byte_start + run.byte_length) as usize;
                assert_eq!(passage.source_of(expected_start..end), Some(source));
            }
            expected_start = end;
        }
        assert_eq!(expected_start, passage.text.len(), "runs reach the end");
        for mention in &passage.mentions {
            assert!(passage.text.get(mention.text_start as usize..mention.text_end as usize).is_some());
        }
        assert!(!passage.text.starts_with(' ') && !passage.text.ends_with(' ') && !passage.text.contains("  "));
    }
}

/// A second reader, as simple as can be: a character at a time, with nothing of the first one.
mod naive {
    #[derive(Debug, Default)]
    pub struct Node {
        pub name: String,
        pub text: String,
        pub children: Vec<Node>,
    }

    pub fn parse(xml: &str) -> Node {
        let mut stack = vec![Node::default()];
        let mut rest = xml;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("<!--") {
                rest = &after[after.find("-->").unwrap() + 3..];
            } else if let Some(after) = rest.strip_prefix("<![CDATA[") {
                let end = after.find("]]>").unwrap();
                push(&mut stack, &after[..end]);
                rest = &after[end + 3..];
            } else if rest.starts_with("<?") || rest.starts_with("<!") {
                rest = &rest[rest.find('>').unwrap() + 1..];
            } else if let Some(after) = rest.strip_prefix("</") {
                rest = &after[after.find('>').unwrap() + 1..];
                let node = stack.pop().unwrap();
                stack.last_mut().unwrap().children.push(node);
            } else if let Some(after) = rest.strip_prefix('<') {
                let end = after.find('>').unwrap();
                let tag = &after[..end];
                let is_empty = tag.ends_with('/');
                let tag = tag.trim_end_matches('/');
                let name = tag.split(char::is_whitespace).next().unwrap();
                let node = Node { name: name.into(), ..Node::default() };
                if is_empty {
                    stack.last_mut().unwrap().children.push(node)
                } else {
                    stack.push(node)
                }
                rest = &after[end + 1..];
            } else {
                let end = rest.find('<').unwrap_or(rest.len());
                push(&mut stack, &decode(&rest[..end]));
                rest = &rest[end..];
            }
        }
        stack.pop().unwrap()
    }

    fn push(stack: &mut [Node], text: &str) {
        let node = Node { text: text.into(), ..Node::default() };
        stack.last_mut().unwrap().children.push(node);
    }

    fn decode(text: &str) -> String {
        let mut decoded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('&') {
            decoded += before;
            let (name, after) = after.split_once(';').unwrap();
            let number = name.strip_prefix("#x").map(|digits| u32::from_str_radix(digits, 16).unwrap());
            let number = number.or_else(|| name.strip_prefix('#').map(|digits| digits.parse().unwrap()));
            match (number, name) {
                (Some(number), _) => decoded.push(char::from_u32(number).unwrap()),
                (None, "lt") => decoded.push('<'),
                (None, "gt") => decoded.push('>'),
                (None, "amp") => decoded.push('&'),
                (None, "quot") => decoded.push('"'),
                (None, "apos") => decoded.push('\''),
                (None, other) => panic!("&{other};"),
            }
            rest = after;
        }
        decoded + rest
    }

    const ASIDE: [&str; 13] = [
        "fig",
        "fig-group",
        "table-wrap",
        "supplementary-material",
        "media",
        "list",
        "boxed-text",
        "def-list",
        "disp-quote",
        "fn",
        "p",
        "graphic",
        "inline-graphic",
    ];

    /// Paragraphs below an element in document order, without those of figures, tables and supplements.
    pub fn paragraphs<'n>(node: &'n Node, found: &mut Vec<&'n Node>) {
        for child in &node.children {
            if child.name == "p" {
                found.push(child);
            }
            if !["fig", "fig-group", "table-wrap", "supplementary-material", "media"].contains(&child.name.as_str()) {
                paragraphs(child, found);
            }
        }
    }

    pub fn find<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
        node.children.iter().find_map(|child| if child.name == name { Some(child) } else { find(child, name) })
    }

    pub fn has(node: &Node, names: &[&str]) -> bool {
        node.children.iter().any(|child| names.contains(&child.name.as_str()) || has(child, names))
    }

    /// Words of a paragraph, with a space where something was left out.
    pub fn words(node: &Node) -> String {
        let mut text = String::new();
        gather(node, &mut text);
        text.split([' ', '\n', '\t', '\r']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn gather(node: &Node, text: &mut String) {
        *text += &node.text;
        for child in &node.children {
            if ASIDE.contains(&child.name.as_str()) { *text += " " } else { gather(child, text) }
        }
    }
}

/// Characters without what marks them as raised or lowered, and without spaces.
fn bare(text: &str) -> String {
    const FROM: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻₀₁₂₃₄₅₆₇₈₉₊₋ᵃᵇᶜᵈᵉᵐº";
    const TO: &str = "0123456789+-0123456789+-abcdemo";
    let fold = |character: char| match FROM.chars().position(|from| from == character) {
        Some(position) => TO.chars().nth(position).unwrap(),
        None if matches!(character, '−' | '–') => '-',
        None => character,
    };
    text.chars().filter(|character| !" ^()[],".contains(*character)).map(fold).collect()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "xml" || extension == "nxml") {
            found.push(path);
        }
    }
    found.sort();
}

/// Real articles are not part of the project: `CASEMILL_JATS_SAMPLES` names a folder that holds some.
#[test]
fn real_articles_are_read_whole() {
    let Some(folder) = std::env::var_os("CASEMILL_JATS_SAMPLES") else {
        eprintln!("not run: CASEMILL_JATS_SAMPLES names no folder with JATS files");
        return;
    };
    let mut found = Vec::new();
    files(Path::new(&folder), &mut found);
    assert!(!found.is_empty(), "no JATS files below {}", folder.display());
    let (mut n_paragraphs, mut n_exact, mut n_bare) = (0, 0, 0);
    for path in &found {
        let name = path.file_name().unwrap().to_string_lossy();
        let bytes = std::fs::read(path).unwrap();
        let article = read(&bytes, Limits::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        check_offsets(&bytes, &article);
        let tree = naive::parse(std::str::from_utf8(&bytes).unwrap());
        let mut expected = Vec::new();
        naive::paragraphs(naive::find(&tree, "body").unwrap(), &mut expected);
        let is_counted =
            |paragraph: &&Paragraph| paragraph.region == Region::Body && paragraph.element == ParagraphElement::P;
        let paragraphs: Vec<&Paragraph> = article.paragraphs.iter().filter(is_counted).collect();
        assert_eq!(paragraphs.len(), expected.len(), "{name}");
        assert_eq!(article.body, BodyState::Full, "{name}");
        for (paragraph, node) in paragraphs.iter().zip(&expected) {
            let words = naive::words(node);
            n_paragraphs += 1;
            if naive::has(node, &["mml:math", "inline-formula"]) {
                continue;
            }
            if naive::has(node, &["sup", "sub"]) {
                n_bare += 1;
                assert_eq!(bare(&paragraph.passage.text), bare(&words), "{name}");
            } else {
                n_exact += 1;
                // Brackets around a marker that is glued to a word are the one liberty.
                if paragraph.passage.text != words {
                    assert_eq!(bare(&paragraph.passage.text), bare(&words), "{name}");
                    eprintln!("{name}: {}", paragraph.passage.text);
                }
            }
        }
        assert!(article.ids.pmcid.is_some(), "{name}");
        assert!(article.title.is_some(), "{name}");
        let has_abstract = naive::find(&tree, "abstract").is_some();
        assert_eq!(article.abstract_state == AbstractState::Present, has_abstract, "{name}");
        eprintln!(
            "{name}: {} p, {} fig ({} mentioned), {} table, {} supplement, {} ref, {:?} nc {} nd {} {:?}{}, {} warnings",
            paragraphs.len(),
            article.figures.len(),
            article.figures.iter().filter(|figure| !figure.mentions.is_empty()).count(),
            article.tables.len(),
            article.supplements.len(),
            article.references.len(),
            article.permissions.license.family,
            article.permissions.license.non_commercial,
            article.permissions.license.no_derivatives,
            article.permissions.license.version,
            if article.permissions.is_disagreement { " DISAGREES" } else { "" },
            article.warnings.len()
        );
    }
    eprintln!(
        "{} files, {n_paragraphs} paragraphs: {n_exact} compared letter by letter, {n_bare} without scripts",
        found.len()
    );
}

const PIECES: [&str; 24] = [
    "word",
    " ",
    "5",
    "\n ",
    "<italic>in</italic>",
    "<sup>9</sup>",
    "<sub>2</sub>",
    "&alpha;",
    "&#x2013;",
    "&lt;",
    "<xref ref-type=\"bibr\" rid=\"r1\">12</xref>",
    "<xref ref-type=\"fig\" rid=\"f1\">Fig</xref>",
    "<fig id=\"f1\"><label>1</label><caption><p>Cap.</p></caption><graphic xlink:href=\"g\"/></fig>",
    "<bold>b <italic>i</italic></bold>",
    "<list><list-item><p>item</p></list-item></list>",
    "<![CDATA[<raw>]]>",
    "<!-- c -->",
    "&deg2;",
    "&mark;",
    "<break/>",
    "<inline-formula><tex-math>$x$</tex-math></inline-formula>",
    "é",
    "<table-wrap><table><tr><td rowspan=\"2\">1</td><td>2</td></tr></table></table-wrap>",
    "<mml:math><mml:mn>4</mml:mn></mml:math>",
];

fn article_of(content: &str) -> String {
    format!(
        "<!DOCTYPE article [<!ENTITY deg2 \" ° C \"><!ENTITY mark \"<bold>m&#38;lt;</bold> n\">]><article><body><sec><title>T</title><p>{content}</p></sec></body></article>"
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_all(&bytes, Limits::default());
    }

    #[test]
    fn mutated_articles_never_panic(
        pieces in proptest::collection::vec(0..PIECES.len(), 0..12),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let content: String = pieces.iter().map(|piece| PIECES[*piece]).collect();
        let mut bytes = article_of(&content).into_bytes();
        for (place, byte) in cuts {
            let place = place.index(bytes.len());
            if byte < 64 { bytes.remove(place); } else { bytes[place] = byte; }
        }
        if let Ok(articles) = read_all(&bytes, Limits::default()) {
            for article in articles {
                check_offsets(&bytes, &article);
            }
        }
    }

    #[test]
    fn offsets_point_at_their_bytes(pieces in proptest::collection::vec(0..PIECES.len(), 0..20)) {
        let content: String = pieces.iter().map(|piece| PIECES[*piece]).collect();
        parse(&article_of(&content));
    }

    /// Markup that only changes the looks changes no text.
    #[test]
    fn inline_markup_changes_no_text(
        words in proptest::collection::vec("[a-zA-Z0-9é°,. ]{0,6}", 1..10),
        tags in proptest::collection::vec(0..6_usize, 10),
    ) {
        const TAGS: [&str; 6] = ["", "italic", "bold", "named-content", "styled-content", "sc"];
        let mut marked = String::new();
        let mut depth = Vec::new();
        for (word, tag) in words.iter().zip(tags) {
            if tag == 0 {
                if let Some(tag) = depth.pop() { marked += &format!("</{tag}>"); }
            } else {
                marked += &format!("<{}>", TAGS[tag]);
                depth.push(TAGS[tag]);
            }
            marked += word;
        }
        while let Some(tag) = depth.pop() { marked += &format!("</{tag}>"); }
        let of = |content: &str| {
            let article = parse(&article_of(content));
            article.paragraphs[0].passage.text.clone()
        };
        prop_assert_eq!(of(&marked), of(&words.concat()));
    }

    /// What a span of the text comes from says the same when read by itself.
    #[test]
    fn a_span_decodes_to_itself(
        words in proptest::collection::vec(prop_oneof!["[a-z]{1,4}", Just("&amp;".to_owned()), Just("&#233;".to_owned()), Just(" ".to_owned())], 1..12),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        let xml = article_of(&words.concat());
        let article = parse(&xml);
        let passage = &article.paragraphs[0].passage;
        let borders: Vec<usize> = (0..=passage.text.len()).filter(|position| passage.text.is_char_boundary(*position)).collect();
        let (from, to) = (borders[from.index(borders.len())], borders[to.index(borders.len())]);
        let (from, to) = (from.min(to), from.max(to));
        if let Some(source) = passage.source_of(from..to) {
            let again = line(&format!("|{}|", &xml[source]));
            prop_assert_eq!(again.trim_matches('|').trim(), passage.text[from..to].trim());
        } else {
            prop_assert_eq!(from, to);
        }
    }
}
