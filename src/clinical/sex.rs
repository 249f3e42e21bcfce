//! Words that state the sex of a person, English and French.

use crate::record::vector::Sex;

/// Longest text that is read, in bytes.
const MAX_TEXT: usize = 64;
const ARTICLES: [&str; 8] = ["a ", "an ", "the ", "un ", "une ", "le ", "la ", "l'"];
/// Words behind or before a word of sex that add nothing to it.
const PEOPLE: [&str; 12] = [
    "patient", "patiente", "adult", "adulte", "child", "enfant", "infant", "newborn", "person", "sex", "sexe", "gender",
];

/// The sex that a text of nothing else states: `M`, `female`, `a woman`, `garçon`, `male patient`; whatever its case.
/// None for every other text, also for one that names both. Nothing is inferred from names, pronouns or relatives.
pub fn sex(text: &str) -> Option<Sex> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let lower = text.trim().to_lowercase();
    let plain = ARTICLES.iter().find_map(|article| lower.strip_prefix(article)).unwrap_or(&lower);
    let mut words = plain.split_whitespace().filter(|word| !PEOPLE.contains(word));
    let word = words.next()?;
    words.next().is_none().then(|| of_word(word)).flatten()
}

fn of_word(word: &str) -> Option<Sex> {
    Some(match word {
        "m" | "male" | "males" | "man" | "boy" | "gentleman" | "schoolboy" | "homme" | "garçon" | "garcon"
        | "masculin" | "masculine" | "monsieur" | "mâle" => Sex::Male,
        "f" | "female" | "females" | "woman" | "girl" | "lady" | "schoolgirl" | "femme" | "fille" | "fillette"
        | "féminin" | "feminin" | "féminine" | "feminine" | "dame" | "femelle" => Sex::Female,
        "other" | "intersex" | "nonbinary" | "non-binary" | "autre" | "intersexe" | "intersexué" => Sex::Other,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;

    #[test]
    fn words_of_sex() {
        let inputs = [
            "M",
            "F",
            "f",
            "male",
            "Female",
            "a woman",
            "the man",
            "boy",
            "girl",
            "male patient",
            "female infant",
            "homme",
            "Femme",
            "garçon",
            "une fille",
            "FÉMININ",
            "intersex",
            "Other",
            "male sex", // and what states none
            "",
            "X",
            "patient",
            "he",
            "mother",
            "unknown",
            "male and female",
            "male-to-female",
            "man woman",
            "feminist",
            "M.",
        ];
        let account: Vec<String> = inputs.iter().map(|input| format!("{input} = {:?}", sex(input))).collect();
        expect![[r#"
            M = Some(Male)
            F = Some(Female)
            f = Some(Female)
            male = Some(Male)
            Female = Some(Female)
            a woman = Some(Female)
            the man = Some(Male)
            boy = Some(Male)
            girl = Some(Female)
            male patient = Some(Male)
            female infant = Some(Female)
            homme = Some(Male)
            Femme = Some(Female)
            garçon = Some(Male)
            une fille = Some(Female)
            FÉMININ = Some(Female)
            intersex = Some(Other)
            Other = Some(Other)
            male sex = Some(Male)
             = None
            X = None
            patient = None
            he = None
            mother = None
            unknown = None
            male and female = None
            male-to-female = None
            man woman = None
            feminist = None
            M. = None"#]]
        .assert_eq(&account.join("\n"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_whatever_its_case(text in "\\PC{0,20}") {
            // Lower-case forms that change in length, such as İ, have no word of sex.
            prop_assert_eq!(sex(&text), sex(&text.to_lowercase()));
        }
    }
}
