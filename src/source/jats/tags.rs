//! The elements of JATS that the reader treats by name. Prefixes of namespaces are left off, since the elements of
//! MathML (`mml:`), NISO ALI (`ali:`) and CALS tables (`oasis:`) that matter have names of their own.

macro_rules! tags {
    ($($tag:ident = $name:literal)*) => {
        /// What a node of the tree is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Tag {
            /// Text as it stands in the file.
            Text,
            /// Text that an entity stands for.
            Replaced,
            /// A numeric character reference; the content is the reference without `&` and `;`.
            Character,
            /// An element that has no treatment of its own.
            Other,
            $($tag,)*
        }

        impl Tag {
            /// By local name.
            pub fn from_name(name: &[u8]) -> Self {
                match name {
                    $($name => Self::$tag,)*
                    _ => Self::Other,
                }
            }
        }
    };
}

tags! {
    Abbrev = b"abbrev" Abstract = b"abstract" Ack = b"ack" Aff = b"aff" AltText = b"alt-text"
    Alternatives = b"alternatives" Annotation = b"annotation" AnnotationXml = b"annotation-xml" Anonymous = b"anonymous"
    App = b"app" AppGroup = b"app-group" Article = b"article" ArticleCategories = b"article-categories" ArticleId = b"article-id"
    ArticleMeta = b"article-meta" ArticleTitle = b"article-title" Attrib = b"attrib" Back = b"back" Bio = b"bio"
    Body = b"body" BoxedText = b"boxed-text" Break = b"break" Caption = b"caption" ChapterTitle = b"chapter-title"
    ChemStructWrap = b"chem-struct-wrap" Citation = b"citation" CitationAlternatives = b"citation-alternatives" Code = b"code"
    Col = b"col" Colspec = b"colspec" Collab = b"collab" Contrib = b"contrib" ContribGroup = b"contrib-group"
    ContribId = b"contrib-id" CopyrightHolder = b"copyright-holder" CopyrightStatement = b"copyright-statement"
    CopyrightYear = b"copyright-year" CustomMeta = b"custom-meta" Date = b"date" Day = b"day" Def = b"def" DefItem = b"def-item"
    DefList = b"def-list" DispFormula = b"disp-formula" DispFormulaGroup = b"disp-formula-group" DispQuote = b"disp-quote"
    ElementCitation = b"element-citation" ElocationId = b"elocation-id" Email = b"email" Entry = b"entry" Etal = b"etal"
    Event = b"event" ExtLink = b"ext-link" Fig = b"fig" FigGroup = b"fig-group" FloatsGroup = b"floats-group"
    FloatsWrap = b"floats-wrap" Fn = b"fn" FnGroup = b"fn-group" TableWrapFoot = b"table-wrap-foot" Fpage = b"fpage" Front = b"front"
    FrontStub = b"front-stub" GivenNames = b"given-names" Glossary = b"glossary" Graphic = b"graphic" History = b"history"
    Html = b"html" IndexTerm = b"index-term" InlineFormula = b"inline-formula" InlineGraphic = b"inline-graphic"
    InlineSupplement = b"inline-supplementary-material" Issn = b"issn" Issue = b"issue" JournalId = b"journal-id"
    JournalMeta = b"journal-meta" JournalTitle = b"journal-title" JournalTitleGroup = b"journal-title-group" Kwd = b"kwd"
    KwdGroup = b"kwd-group" Label = b"label" License = b"license" LicenseP = b"license-p" LicenseRef = b"license_ref" List = b"list"
    ListItem = b"list-item" LongDesc = b"long-desc" Lpage = b"lpage" Math = b"math" Maction = b"maction" Media = b"media"
    MetaName = b"meta-name" MetaValue = b"meta-value" Mfenced = b"mfenced" Mfrac = b"mfrac" Mi = b"mi" MixedCitation = b"mixed-citation"
    Mn = b"mn" Mo = b"mo" Month = b"month" Mover = b"mover" Mphantom = b"mphantom" Mroot = b"mroot" Mspace = b"mspace"
    Msqrt = b"msqrt" Msub = b"msub" Msubsup = b"msubsup" Msup = b"msup" Mtable = b"mtable" Mtd = b"mtd" Mtext = b"mtext" Mtr = b"mtr"
    Munder = b"munder" Munderover = b"munderover" Name = b"name" NameAlternatives = b"name-alternatives" NlmCitation = b"nlm-citation"
    Notes = b"notes" ObjectId = b"object-id" P = b"p" Permissions = b"permissions" PersonGroup = b"person-group" Preformat = b"preformat"
    PrivateChar = b"private-char" PubDate = b"pub-date" PubHistory = b"pub-history" PubId = b"pub-id" Publisher = b"publisher"
    PublisherName = b"publisher-name" Ref = b"ref" RefList = b"ref-list" RelatedArticle = b"related-article"
    RelatedObject = b"related-object" Response = b"response" Row = b"row" Season = b"season" Sec = b"sec" Semantics = b"semantics"
    Source = b"source" Speaker = b"speaker" Speech = b"speech" Statement = b"statement" StringDate = b"string-date"
    StringName = b"string-name" Sub = b"sub" SubArticle = b"sub-article" SubjGroup = b"subj-group" Subject = b"subject"
    Subtitle = b"subtitle" Suffix = b"suffix" Sup = b"sup" Supplement = b"supplementary-material" Surname = b"surname"
    Table = b"table" TableWrap = b"table-wrap" TableWrapGroup = b"table-wrap-group" Tbody = b"tbody" Td = b"td" Term = b"term"
    TexMath = b"tex-math" TextualForm = b"textual-form" Tfoot = b"tfoot" Tgroup = b"tgroup" Th = b"th" Thead = b"thead" Title = b"title"
    TitleGroup = b"title-group" Tr = b"tr" TransAbstract = b"trans-abstract" TransTitle = b"trans-title" Uri = b"uri"
    VerseGroup = b"verse-group" VerseLine = b"verse-line" Volume = b"volume" Xref = b"xref" Year = b"year"
}
