use super::results::{columns, results_in};
use super::units::{convert, ucum};
use super::vitals::{blood_pressure, vital, vital_of_text, vitals_in};
use super::{ClinicalWords, results, vitals};
use crate::record::vector::{TestResult, ValueState, Vital, VitalKind};
use expect_test::expect;
use proptest::prelude::*;
use std::sync::LazyLock;

const LEXICON: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/lexicon/clinical.toml"));
static WORDS: LazyLock<ClinicalWords> = LazyLock::new(|| ClinicalWords::parse("clinical.toml", LEXICON).unwrap());

fn told_vital(vital: &Vital) -> String {
    let value = vital.value.map_or("none".to_owned(), |value| format!("{value}"));
    format!("{:?} {value} {} {:?} ({})", vital.kind, vital.unit, vital.state, vital.raw)
}

fn told_result(result: &TestResult) -> String {
    let TestResult {
        name,
        comparator,
        value,
        value_text,
        unit,
        reference_text,
        reference_low,
        reference_high,
        day,
        ..
    } = result;
    let mut told = format!("{name} = {}{}", comparator.as_deref().unwrap_or_default(), value.unwrap());
    if *value_text != Some(value.unwrap().to_string()) {
        told.push_str(&format!(" as {:?}", value_text.as_deref().unwrap_or_default()));
    }
    if let Some(unit) = unit {
        told.push_str(&format!(" {unit}"));
    }
    if let Some(reference) = reference_text {
        told.push_str(&format!(" [{reference}: {reference_low:?} to {reference_high:?}]"));
    }
    if let Some(day) = day {
        told.push_str(&format!(" day {day}"));
    }
    told
}

fn account<I: AsRef<str>, T>(inputs: &[I], told: impl Fn(&str) -> Vec<T>) -> String
where
    T: AsRef<str>,
{
    let mut account = String::new();
    for input in inputs {
        account.push_str(input.as_ref());
        account.push('\n');
        for line in told(input.as_ref()) {
            account.push_str("    ");
            account.push_str(line.as_ref());
            account.push('\n');
        }
    }
    account
}

#[test]
fn units_as_written() {
    let inputs = [
        "mmHg",
        "mm Hg",
        "MMHG",
        "°F",
        "º C",
        "℃",
        "C",
        "degrees Celsius",
        "fahrenheit",
        "bpm",
        "beats/min",
        "beats per minute",
        "breaths / min",
        "/min",
        "times/minute",
        "mg/dl",
        "mg per dL",
        "mg dL⁻¹",
        "mmol·L⁻¹",
        "μmol/L",
        "µg/mL",
        "mcg/ml",
        "× 10⁹/L",
        "x10^9/L",
        "×10*3/µL",
        "10^3 cells/μL",
        "×109/L",
        "K/µL",
        "cells/mm³",
        "/mm3",
        "/HPF",
        "mIU/L",
        "µIU/mL",
        "U/l",
        "IU/L",
        "mEq/L",
        "mL/min/1.73 m²",
        "mg/24 h",
        "mm/h",
        "kg/m2",
        "kg/m²",
        "lbs",
        "stone",
        "in",
        "%",
        "per cent",
        "kPa",
        "fl",
        "mM",
        "out of 10",
        "L/L",
        // unknown
        "",
        "foo",
        "mg/foo",
        "foo/L",
        "109/L",
        "M",
        "G",
        "Mmol/Q",
        "/",
        "//",
        "cells",
        "10^9",
        "mg/L/L/L",
        "H",
        "year",
    ];
    let told: Vec<String> = inputs
        .iter()
        .map(|unit| format!("{unit} = {}", ucum(unit, &WORDS).unwrap_or_else(|| "unknown".to_owned())))
        .collect();
    expect![[r#"
        mmHg = mm[Hg]
        mm Hg = mm[Hg]
        MMHG = mm[Hg]
        °F = [degF]
        º C = Cel
        ℃ = Cel
        C = Cel
        degrees Celsius = Cel
        fahrenheit = [degF]
        bpm = /min
        beats/min = /min
        beats per minute = /min
        breaths / min = /min
        /min = /min
        times/minute = /min
        mg/dl = mg/dL
        mg per dL = mg/dL
        mg dL⁻¹ = mg/dL
        mmol·L⁻¹ = mmol/L
        μmol/L = umol/L
        µg/mL = ug/mL
        mcg/ml = ug/mL
        × 10⁹/L = 10*9/L
        x10^9/L = 10*9/L
        ×10*3/µL = 10*3/uL
        10^3 cells/μL = 10*3/uL
        ×109/L = 10*9/L
        K/µL = 10*3/uL
        cells/mm³ = /mm3
        /mm3 = /mm3
        /HPF = /[HPF]
        mIU/L = m[IU]/L
        µIU/mL = u[IU]/mL
        U/l = U/L
        IU/L = [IU]/L
        mEq/L = meq/L
        mL/min/1.73 m² = mL/min/{1.73_m2}
        mg/24 h = mg/(24.h)
        mm/h = mm/h
        kg/m2 = kg/m2
        kg/m² = kg/m2
        lbs = [lb_av]
        stone = [stone_av]
        in = [in_i]
        % = %
        per cent = %
        kPa = kPa
        fl = fL
        mM = mmol/L
        out of 10 = {score}
        L/L = L/L
         = unknown
        foo = unknown
        mg/foo = unknown
        foo/L = unknown
        109/L = unknown
        M = unknown
        G = unknown
        Mmol/Q = unknown
        / = unknown
        // = unknown
        cells = unknown
        10^9 = unknown
        mg/L/L/L = unknown
        H = unknown
        year = unknown"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn conversions() {
    let inputs = [
        (98.6, "[degF]", "Cel"),
        (37.0, "Cel", "[degF]"),
        (310.15, "K", "Cel"),
        (-40.0, "[degF]", "Cel"),
        (150.0, "[lb_av]", "kg"),
        (3200.0, "g", "kg"),
        (11.0, "[stone_av]", "[lb_av]"),
        (16.0, "[oz_av]", "[lb_av]"),
        (70.0, "[in_i]", "cm"),
        (6.0, "[ft_i]", "[in_i]"),
        (1.72, "m", "cm"),
        (16.0, "kPa", "mm[Hg]"),
        (120.0, "mm[Hg]", "kPa"),
        (1.5, "/s", "/min"),
        (5.0, "kg", "kg"),
        (5.0, "kg", "cm"),
        (5.0, "foo", "foo"),
        (5.0, "mg/dL", "mmol/L"),
        (5.0, "%", "/min"),
    ];
    let told: Vec<String> = inputs
        .iter()
        .map(|(value, from, to)| format!("{value} {from} = {:?} {to}", convert(*value, from, to)))
        .collect();
    expect![[r#"
        98.6 [degF] = Some(37.0) Cel
        37 Cel = Some(98.6) [degF]
        310.15 K = Some(37.0) Cel
        -40 [degF] = Some(-40.0) Cel
        150 [lb_av] = Some(68.0388555) kg
        3200 g = Some(3.2) kg
        11 [stone_av] = Some(154.0) [lb_av]
        16 [oz_av] = Some(1.0) [lb_av]
        70 [in_i] = Some(177.8) cm
        6 [ft_i] = Some(72.0) [in_i]
        1.72 m = Some(172.0) cm
        16 kPa = Some(120.010200867) mm[Hg]
        120 mm[Hg] = Some(15.99864) kPa
        1.5 /s = Some(90.0) /min
        5 kg = Some(5.0) kg
        5 kg = None cm
        5 foo = None foo
        5 mg/dL = None mmol/L
        5 % = None /min"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn vitals_of_numbers() {
    use VitalKind::*;
    let inputs = [
        (Temperature, 98.6, None),
        (Temperature, 37.0, None),
        (Temperature, 986.0, None),
        (Temperature, 3.7, None),
        (Temperature, 0.0, None),
        (Temperature, 50.0, None),
        (Temperature, 98.6, Some("F")),
        (Temperature, 98.6, Some("°C")),
        (Temperature, 310.15, Some("K")),
        (Temperature, f64::NAN, None),
        (HeartRate, 92.0, Some("bpm")),
        (HeartRate, 92.0, None),
        (HeartRate, 920.0, None),
        (HeartRate, 92.0, Some("kg")),
        (HeartRate, 92.0, Some("foo")),
        (HeartRate, 92.0, Some(" ")),
        (OxygenSaturation, 94.0, Some("%")),
        (OxygenSaturation, 0.94, None),
        (OxygenSaturation, 101.0, Some("%")),
        (SystolicBloodPressure, 16.0, Some("kPa")),
        (Weight, 68.0, None),
        (Weight, 68.0, Some("kg")),
        (Weight, 150.0, Some("lb")),
        (Weight, 3200.0, Some("g")),
        (Weight, 700.0, None),
        (Weight, 3200.0, None),
        (Height, 172.0, None),
        (Height, 1.72, None),
        (Height, 65.0, None),
        (Height, 65.0, Some("in")),
        (Height, 500.0, None),
        (BodyMassIndex, 23.1, Some("kg/m2")),
        (Pain, 7.0, None),
        (Pain, 13.0, None),
        (MeanBloodPressure, 65.0, Some("mm Hg")),
        (RespiratoryRate, 18.0, Some("breaths/min")),
        (DiastolicBloodPressure, f64::INFINITY, None),
    ];
    let told: Vec<String> = inputs
        .iter()
        .map(|(kind, number, unit)| {
            let raw = format!("{number} {}", unit.unwrap_or("-"));
            told_vital(&vital(*kind, *number, *unit, &raw, &WORDS))
        })
        .collect();
    expect![[r#"
        Temperature 37 Cel UnitInferred (98.6 -)
        Temperature 37 Cel UnitInferred (37 -)
        Temperature none Cel OutOfBounds (986 -)
        Temperature none Cel OutOfBounds (3.7 -)
        Temperature none Cel OutOfBounds (0 -)
        Temperature none Cel OutOfBounds (50 -)
        Temperature 37 Cel Converted (98.6 F)
        Temperature none Cel OutOfBounds (98.6 °C)
        Temperature 37 Cel Converted (310.15 K)
        Temperature none Cel Text (NaN -)
        HeartRate 92 /min AsStated (92 bpm)
        HeartRate 92 /min UnitInferred (92 -)
        HeartRate none /min OutOfBounds (920 -)
        HeartRate none /min Text (92 kg)
        HeartRate none /min Text (92 foo)
        HeartRate 92 /min UnitInferred (92  )
        OxygenSaturation 94 % AsStated (94 %)
        OxygenSaturation none % OutOfBounds (0.94 -)
        OxygenSaturation none % OutOfBounds (101 %)
        SystolicBloodPressure 120 mm[Hg] Converted (16 kPa)
        Weight none kg Text (68 -)
        Weight 68 kg AsStated (68 kg)
        Weight 68.04 kg Converted (150 lb)
        Weight 3.2 kg Converted (3200 g)
        Weight none kg Text (700 -)
        Weight 3.2 kg UnitInferred (3200 -)
        Height 172 cm UnitInferred (172 -)
        Height 172 cm UnitInferred (1.72 -)
        Height none cm Text (65 -)
        Height 165.1 cm Converted (65 in)
        Height none cm OutOfBounds (500 -)
        BodyMassIndex 23.1 kg/m2 AsStated (23.1 kg/m2)
        Pain 7 {score} UnitInferred (7 -)
        Pain none {score} OutOfBounds (13 -)
        MeanBloodPressure 65 mm[Hg] AsStated (65 mm Hg)
        RespiratoryRate 18 /min AsStated (18 breaths/min)
        DiastolicBloodPressure none mm[Hg] Text (inf -)"#]]
    .assert_eq(&told.join("\n"));
}

/// Temperatures of both scales under one label, with impossible ones among them.
#[test]
fn mim_02_the_scale_of_a_temperature_follows_from_its_value() {
    let told: Vec<String> = ["98.6", "37.0", "986", "3.7", "0", "", "99.1", "unable"]
        .iter()
        .map(|cell| told_vital(&vital_of_text(VitalKind::Temperature, cell, None, &WORDS)))
        .collect();
    expect![[r#"
        Temperature 37 Cel UnitInferred (98.6)
        Temperature 37 Cel UnitInferred (37.0)
        Temperature none Cel OutOfBounds (986)
        Temperature none Cel OutOfBounds (3.7)
        Temperature none Cel OutOfBounds (0)
        Temperature none Cel Text ()
        Temperature 37.3 Cel UnitInferred (99.1)
        Temperature none Cel Text (unable)"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn vitals_of_cells() {
    use VitalKind::*;
    let inputs = [
        (Height, "5'8\"", None),
        (Height, "5 ft 8 in", None),
        (Height, "5 ft 13 in", None),
        (Weight, "11 stone 4 lb", None),
        (Weight, "7 lb 3 oz", None),
        (Weight, "150", Some("lb")),
        (Weight, "150 kg", Some("lb")),
        (Weight, "68 kg", Some("kg")),
        (HeartRate, "92-110", None),
        (Pain, "7/10", None),
        (Pain, "10", None),
        (Temperature, "38.4 C", None),
        (RespiratoryRate, "refused", None),
    ];
    let told: Vec<String> =
        inputs.iter().map(|(kind, cell, unit)| told_vital(&vital_of_text(*kind, cell, *unit, &WORDS))).collect();
    expect![[r#"
        Height 172.7 cm Converted (5'8")
        Height 172.7 cm Converted (5 ft 8 in)
        Height none cm Text (5 ft 13 in)
        Weight 71.67 kg Converted (11 stone 4 lb)
        Weight 3.26 kg Converted (7 lb 3 oz)
        Weight 68.04 kg Converted (150)
        Weight none kg Text (150 kg)
        Weight 68 kg AsStated (68 kg)
        HeartRate none /min Text (92-110)
        Pain 7 {score} AsStated (7/10)
        Pain 10 {score} UnitInferred (10)
        Temperature 38.4 Cel AsStated (38.4 C)
        RespiratoryRate none /min Text (refused)"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn pairs_of_pressures() {
    let inputs = [
        "110/65",
        "110/65 mmHg",
        " 128 / 76 ",
        "17.1/10.1 kPa",
        "65/110",
        "500/65",
        "110/65/40",
        "110",
        "110/",
        "a/b",
        "110/65 kg",
        "1/2/2020",
        "120/80-90",
        "12/2020",
        "110/65 foo",
    ];
    let told = account(&inputs, |input| {
        blood_pressure(input, &WORDS)
            .map_or_else(|| vec!["none".to_owned()], |pair| pair.iter().map(told_vital).collect())
    });
    expect![[r#"
        110/65
            SystolicBloodPressure 110 mm[Hg] UnitInferred (110/65)
            DiastolicBloodPressure 65 mm[Hg] UnitInferred (110/65)
        110/65 mmHg
            SystolicBloodPressure 110 mm[Hg] AsStated (110/65 mmHg)
            DiastolicBloodPressure 65 mm[Hg] AsStated (110/65 mmHg)
         128 / 76 
            SystolicBloodPressure 128 mm[Hg] UnitInferred (128 / 76)
            DiastolicBloodPressure 76 mm[Hg] UnitInferred (128 / 76)
        17.1/10.1 kPa
            SystolicBloodPressure 128 mm[Hg] Converted (17.1/10.1 kPa)
            DiastolicBloodPressure 76 mm[Hg] Converted (17.1/10.1 kPa)
        65/110
            SystolicBloodPressure none mm[Hg] OutOfBounds (65/110)
            DiastolicBloodPressure none mm[Hg] OutOfBounds (65/110)
        500/65
            SystolicBloodPressure none mm[Hg] OutOfBounds (500/65)
            DiastolicBloodPressure 65 mm[Hg] UnitInferred (500/65)
        110/65/40
            none
        110
            none
        110/
            none
        a/b
            none
        110/65 kg
            SystolicBloodPressure none mm[Hg] Text (110/65 kg)
            DiastolicBloodPressure none mm[Hg] Text (110/65 kg)
        1/2/2020
            none
        120/80-90
            none
        12/2020
            none
        110/65 foo
            none
    "#]]
    .assert_eq(&told);
}

#[test]
fn vitals_of_prose() {
    let inputs = [
        "On examination, blood pressure of 128/76 mmHg, pulse 92 beats/min, and temperature was 38.4°C.",
        "BP 110/65, HR 92, RR 22, SpO2 94% on room air.",
        "The respiratory rate, 22 breaths per minute, was regular.",
        "His height was 172 cm, weight 68 kg, and BMI 23.1 kg/m2.",
        "Blood pressure (BP) was 90/60 mm Hg and heart rate (HR) was 120 bpm.",
        "The temperature was 101.1°F (38.4°C).",
        "Vital signs: T 38.4 °C; P 92; oxygen saturation 94% while breathing ambient air.",
        "She was 5 feet 8 inches tall with a height of 5 ft 8 in.",
        "Pain score was 7/10.",
        "A mean arterial pressure of 65 mmHg was noted.",
        "systolic blood pressure was 90 mmHg",
        "Temperature: 38.4° and pulse rate: 92/min",
        "oxygen saturation of 94 %",
        "blood pressure was 17.1/10.1 kPa",
        "The temperature was 98.6 °C.",
        "temperature of 37\u{a0}°C",
        "body temperature 36.8℃, pulse 80 times/min, respiration 20 times/min, blood pressure 120/80mmHg",
        // not taken
        "Blood pressure fell from 120 to 90 mmHg.",
        "heart rate of 92 to 110 beats/min",
        "heart rate 92–110/min",
        "SpO2 <90%",
        "uterine weight of 500 g",
        "birth weight 3200 g",
        "weight loss of 5 kg over 3 months",
        "weight 68",
        "heart rate, 80 minutes later",
        "blood pressure medication 5 mg",
        "Heart rate and respiratory rate were 92/min and 22/min, respectively.",
        "fetal heart rate 140 bpm",
        "water temperature 40 °C",
        "The blood pressure was 120/80-130/90 mmHg",
        "pulse 2 weeks",
        "BP 3/4/2020",
        "blood pressure",
        "height 2",
    ];
    let told = account(&inputs, |input| vitals_in(input, &WORDS).iter().map(|(vital, _)| told_vital(vital)).collect());
    expect![[r#"
        On examination, blood pressure of 128/76 mmHg, pulse 92 beats/min, and temperature was 38.4°C.
            SystolicBloodPressure 128 mm[Hg] AsStated (128/76 mmHg)
            DiastolicBloodPressure 76 mm[Hg] AsStated (128/76 mmHg)
            HeartRate 92 /min AsStated (92 beats/min)
            Temperature 38.4 Cel AsStated (38.4°C)
        BP 110/65, HR 92, RR 22, SpO2 94% on room air.
            SystolicBloodPressure 110 mm[Hg] UnitInferred (110/65)
            DiastolicBloodPressure 65 mm[Hg] UnitInferred (110/65)
            HeartRate 92 /min UnitInferred (92)
            RespiratoryRate 22 /min UnitInferred (22)
            OxygenSaturation 94 % AsStated (94%)
        The respiratory rate, 22 breaths per minute, was regular.
            RespiratoryRate 22 /min AsStated (22 breaths per minute)
        His height was 172 cm, weight 68 kg, and BMI 23.1 kg/m2.
            Height 172 cm AsStated (172 cm)
            Weight 68 kg AsStated (68 kg)
            BodyMassIndex 23.1 kg/m2 AsStated (23.1 kg/m2)
        Blood pressure (BP) was 90/60 mm Hg and heart rate (HR) was 120 bpm.
            SystolicBloodPressure 90 mm[Hg] AsStated (90/60 mm Hg)
            DiastolicBloodPressure 60 mm[Hg] AsStated (90/60 mm Hg)
            HeartRate 120 /min AsStated (120 bpm)
        The temperature was 101.1°F (38.4°C).
            Temperature 38.4 Cel Converted (101.1°F)
        Vital signs: T 38.4 °C; P 92; oxygen saturation 94% while breathing ambient air.
            Temperature 38.4 Cel AsStated (38.4 °C)
            OxygenSaturation 94 % AsStated (94%)
        She was 5 feet 8 inches tall with a height of 5 ft 8 in.
            Height 172.7 cm Converted (5 ft 8 in)
        Pain score was 7/10.
            Pain 7 {score} AsStated (7/10)
        A mean arterial pressure of 65 mmHg was noted.
            MeanBloodPressure 65 mm[Hg] AsStated (65 mmHg)
        systolic blood pressure was 90 mmHg
            SystolicBloodPressure 90 mm[Hg] AsStated (90 mmHg)
        Temperature: 38.4° and pulse rate: 92/min
            Temperature 38.4 Cel UnitInferred (38.4°)
            HeartRate 92 /min AsStated (92/min)
        oxygen saturation of 94 %
            OxygenSaturation 94 % AsStated (94 %)
        blood pressure was 17.1/10.1 kPa
            SystolicBloodPressure 128 mm[Hg] Converted (17.1/10.1 kPa)
            DiastolicBloodPressure 76 mm[Hg] Converted (17.1/10.1 kPa)
        The temperature was 98.6 °C.
            Temperature none Cel OutOfBounds (98.6 °C)
        temperature of 37 °C
            Temperature 37 Cel AsStated (37 °C)
        body temperature 36.8℃, pulse 80 times/min, respiration 20 times/min, blood pressure 120/80mmHg
            Temperature 36.8 Cel AsStated (36.8℃)
            HeartRate 80 /min AsStated (80 times/min)
            RespiratoryRate 20 /min AsStated (20 times/min)
            SystolicBloodPressure 120 mm[Hg] AsStated (120/80mmHg)
            DiastolicBloodPressure 80 mm[Hg] AsStated (120/80mmHg)
        Blood pressure fell from 120 to 90 mmHg.
        heart rate of 92 to 110 beats/min
        heart rate 92–110/min
        SpO2 <90%
        uterine weight of 500 g
        birth weight 3200 g
        weight loss of 5 kg over 3 months
        weight 68
        heart rate, 80 minutes later
        blood pressure medication 5 mg
        Heart rate and respiratory rate were 92/min and 22/min, respectively.
        fetal heart rate 140 bpm
        water temperature 40 °C
        The blood pressure was 120/80-130/90 mmHg
        pulse 2 weeks
        BP 3/4/2020
        blood pressure
        height 2
    "#]]
    .assert_eq(&told);
}

#[test]
fn results_of_prose() {
    let inputs = [
        "Haemoglobin was 104 g/L (reference range, 130–170), C-reactive protein 62 mg/L.",
        "The WBC count of 12.3 × 10⁹/L and platelets 98 ×10^3/µL were noted.",
        "Troponin I <0.01 ng/mL",
        "sodium, 128 mmol/L; potassium, 5.9 mmol/L",
        "C-reactive protein (CRP) level was elevated at 62 mg/L (normal <5 mg/L).",
        "hemoglobin (normal range, 13–17 g/dL) was 10.4 g/dL",
        "C-reactive protein (CRP; reference <5 mg/L) of 62 mg/L",
        "Urine sodium 20 mmol/L, serum sodium 128 mEq/L (135–145 mEq/L)",
        "pH 7.32, pCO2 of 60 mm Hg, HCO3 18 mmol/L, base excess −5.2 mmol/L",
        "INR 1.2 and hemoglobin A1c 7.2%",
        "WBC 12,300/µL with 85% neutrophils",
        "D-dimer 1.5 µg/mL [FEU]",
        "CA 19-9 was 120 U/mL; CA-125, 35 U/mL (0–35)",
        "creatinine 2.1 mg/dL (baseline 1.0)",
        "alanine aminotransferase 120 U/L, aspartate aminotransferase 98 IU/L",
        "ferritin less than 5 ng/mL",
        "lactate of 4·2 mmol/L",
        "erythrocyte sedimentation rate 80 mm/h, reference range <20 mm/h",
        "albumin 28 g/L (reference range 3.5–5.0 g/dL)",
        "TSH was 0.01 mIU/L (reference: 0.4–4.0)",
        "hemoglobin (104 g/L)",
        "platelet count, 1,234,000/mm3",
        "potassium 5,9 mmol/L",
        "anion gap 18",
        "calcium was 2.9 mmol/L (normal range: men 2.1–2.6, women 2.2–2.7)",
        // not taken
        "Haemoglobin fell from 12.0 to 7.2 g/dL",
        "sodium 128–132 mmol/L",
        "creatinine rose to 1.2 to 3.4 mg/dL",
        "AST and ALT were 120 U/L and 98 U/L, respectively",
        "AST/ALT 120/98 U/L",
        "sodium bicarbonate 50 mEq/L",
        "creatinine clearance 45 mL/min",
        "keep potassium >4 mmol/L",
        "sodium 2 g daily",
        "WBC count of 12.3",
        "haemoglobin was low",
        "g/L",
        "iron 65 mg twice daily",
        "glucose-6-phosphate dehydrogenase 5 U/L",
        "pH 73",
        "vitamin D 1000 IU",
        "sodium (urine) 20 mmol/L",
        "albumin 104 ± 5 g/L",
        "non-HDL cholesterol 120 mg/dL",
        "hemoglobin S 45%",
        "maternal hemoglobin 10 g/dL",
        "potassium 5.9 and 3.2 mmol/L",
    ];
    let told = account(&inputs, |input| {
        results_in(input, &WORDS)
            .iter()
            .map(|(result, range)| format!("{}  <{}>", told_result(result), &input[range.clone()]))
            .collect()
    });
    expect![[r#"
        Haemoglobin was 104 g/L (reference range, 130–170), C-reactive protein 62 mg/L.
            Haemoglobin = 104 g/L [130–170: Some(130.0) to Some(170.0)]  <Haemoglobin was 104 g/L (reference range, 130–170)>
            C-reactive protein = 62 mg/L  <C-reactive protein 62 mg/L>
        The WBC count of 12.3 × 10⁹/L and platelets 98 ×10^3/µL were noted.
            WBC = 12.3 × 10⁹/L  <WBC count of 12.3 × 10⁹/L>
            platelets = 98 ×10^3/µL  <platelets 98 ×10^3/µL>
        Troponin I <0.01 ng/mL
            Troponin I = <0.01 as "<0.01" ng/mL  <Troponin I <0.01 ng/mL>
        sodium, 128 mmol/L; potassium, 5.9 mmol/L
            sodium = 128 mmol/L  <sodium, 128 mmol/L>
            potassium = 5.9 mmol/L  <potassium, 5.9 mmol/L>
        C-reactive protein (CRP) level was elevated at 62 mg/L (normal <5 mg/L).
            C-reactive protein = 62 mg/L [<5 mg/L: None to Some(5.0)]  <C-reactive protein (CRP) level was elevated at 62 mg/L (normal <5 mg/L)>
        hemoglobin (normal range, 13–17 g/dL) was 10.4 g/dL
            hemoglobin = 10.4 g/dL [13–17 g/dL: Some(13.0) to Some(17.0)]  <hemoglobin (normal range, 13–17 g/dL) was 10.4 g/dL>
        C-reactive protein (CRP; reference <5 mg/L) of 62 mg/L
            C-reactive protein = 62 mg/L [<5 mg/L: None to Some(5.0)]  <C-reactive protein (CRP; reference <5 mg/L) of 62 mg/L>
        Urine sodium 20 mmol/L, serum sodium 128 mEq/L (135–145 mEq/L)
            Urine sodium = 20 mmol/L  <Urine sodium 20 mmol/L>
            serum sodium = 128 mEq/L [135–145 mEq/L: Some(135.0) to Some(145.0)]  <serum sodium 128 mEq/L (135–145 mEq/L)>
        pH 7.32, pCO2 of 60 mm Hg, HCO3 18 mmol/L, base excess −5.2 mmol/L
            pH = 7.32  <pH 7.32>
            pCO2 = 60 mm Hg  <pCO2 of 60 mm Hg>
            HCO3 = 18 mmol/L  <HCO3 18 mmol/L>
            base excess = -5.2 as "−5.2" mmol/L  <base excess −5.2 mmol/L>
        INR 1.2 and hemoglobin A1c 7.2%
            INR = 1.2  <INR 1.2>
            hemoglobin A1c = 7.2 %  <hemoglobin A1c 7.2%>
        WBC 12,300/µL with 85% neutrophils
            WBC = 12300 as "12,300" /µL  <WBC 12,300/µL>
        D-dimer 1.5 µg/mL [FEU]
            D-dimer = 1.5 µg/mL  <D-dimer 1.5 µg/mL>
        CA 19-9 was 120 U/mL; CA-125, 35 U/mL (0–35)
            CA 19-9 = 120 U/mL  <CA 19-9 was 120 U/mL>
            CA-125 = 35 U/mL [0–35: Some(0.0) to Some(35.0)]  <CA-125, 35 U/mL (0–35)>
        creatinine 2.1 mg/dL (baseline 1.0)
            creatinine = 2.1 mg/dL  <creatinine 2.1 mg/dL>
        alanine aminotransferase 120 U/L, aspartate aminotransferase 98 IU/L
            alanine aminotransferase = 120 U/L  <alanine aminotransferase 120 U/L>
            aspartate aminotransferase = 98 IU/L  <aspartate aminotransferase 98 IU/L>
        ferritin less than 5 ng/mL
            ferritin = <5 as "less than 5" ng/mL  <ferritin less than 5 ng/mL>
        lactate of 4·2 mmol/L
            lactate = 4.2 as "4·2" mmol/L  <lactate of 4·2 mmol/L>
        erythrocyte sedimentation rate 80 mm/h, reference range <20 mm/h
            erythrocyte sedimentation rate = 80 mm/h [<20 mm/h: None to Some(20.0)]  <erythrocyte sedimentation rate 80 mm/h, reference range <20 mm/h>
        albumin 28 g/L (reference range 3.5–5.0 g/dL)
            albumin = 28 g/L [3.5–5.0 g/dL: None to None]  <albumin 28 g/L (reference range 3.5–5.0 g/dL)>
        TSH was 0.01 mIU/L (reference: 0.4–4.0)
            TSH = 0.01 mIU/L [0.4–4.0: Some(0.4) to Some(4.0)]  <TSH was 0.01 mIU/L (reference: 0.4–4.0)>
        hemoglobin (104 g/L)
            hemoglobin = 104 g/L  <hemoglobin (104 g/L>
        platelet count, 1,234,000/mm3
            platelet = 1234000 as "1,234,000" /mm3  <platelet count, 1,234,000/mm3>
        potassium 5,9 mmol/L
            potassium = 5.9 as "5,9" mmol/L  <potassium 5,9 mmol/L>
        anion gap 18
            anion gap = 18  <anion gap 18>
        calcium was 2.9 mmol/L (normal range: men 2.1–2.6, women 2.2–2.7)
            calcium = 2.9 mmol/L [normal range: men 2.1–2.6, women 2.2–2.7: None to None]  <calcium was 2.9 mmol/L (normal range: men 2.1–2.6, women 2.2–2.7)>
        Haemoglobin fell from 12.0 to 7.2 g/dL
        sodium 128–132 mmol/L
        creatinine rose to 1.2 to 3.4 mg/dL
        AST and ALT were 120 U/L and 98 U/L, respectively
        AST/ALT 120/98 U/L
        sodium bicarbonate 50 mEq/L
        creatinine clearance 45 mL/min
        keep potassium >4 mmol/L
        sodium 2 g daily
        WBC count of 12.3
        haemoglobin was low
        g/L
        iron 65 mg twice daily
        glucose-6-phosphate dehydrogenase 5 U/L
        pH 73
        vitamin D 1000 IU
        sodium (urine) 20 mmol/L
        albumin 104 ± 5 g/L
        non-HDL cholesterol 120 mg/dL
        hemoglobin S 45%
        maternal hemoglobin 10 g/dL
        potassium 5.9 and 3.2 mmol/L
    "#]].assert_eq(&told);
}

#[test]
fn results_of_tables() {
    let plain = ["Test", "Result", "Unit", "Reference range"];
    let course = ["Parameter", "On admission", "Day 5", "Normal range"];
    let tables: [(&[&str], &[&str]); 30] = [
        (&plain, &["Haemoglobin", "104", "g/L", "130–170"]),
        (&plain, &["Hemoglobin", "104 L", "g/L", "130–170"]),
        (&plain, &["WBC count", "12.3 ↑", "×10⁹/L", "4–10"]),
        (&plain, &["C-reactive protein (CRP)", "H 62", "mg/L", "<5"]),
        (&plain, &["Troponin I", "<0.01", "ng/mL", "< 0.04 ng/mL"]),
        (&plain, &["Sodium", "128 (L)", "mmol/L", ""]),
        (&plain, &["Urine sodium", "20*", "mmol/L", "-"]),
        (&plain, &["pH", "7.32", "-", "7.35-7.45"]),
        (&plain, &["INR", "1.2", "", "0.8–1.2"]),
        (&plain, &["Potassium", "5.9 mmol/L", "", "3.5-5.1 mmol/L"]),
        (&plain, &["Creatinine", "2.1", "mg/dL", "men 0.7–1.2"]),
        (&course, &["Haemoglobin (g/L)", "104", "98", "130–170"]),
        (&course, &["White blood cells, ×10⁹/L", "12.3", "9.0", "4.0–10.0"]),
        (&course, &["AST (SGOT)", "120", "80", "up to 40"]),
        (&["", "Value (mg/dL)"], &["Creatinine", "2.1"]),
        (&["Laboratory values", "Admission", "Reference values"], &["Albumin (g/dL)", "2.8", "3.5–5.0"]),
        (&["Laboratory test", "Patient's value", "Normal value"], &["LDH", "480 U/L", "135-225 U/L"]),
        (
            &["Variable", "Reference Range", "On Presentation"],
            &["Platelet count (per mm3)", "150,000–400,000", "98,000"],
        ),
        // refused
        (&plain, &["Haemoglobin", "104", "kg", "130–170"]),
        (&plain, &["Haemoglobin", "low", "g/L", "130–170"]),
        (&plain, &["Haemoglobin", "104–110", "g/L", "130–170"]),
        (&plain, &["Haemoglobin", "104 g/dL", "g/L", "130–170"]),
        (&plain, &["Blood culture", "positive", "", ""]),
        (&plain, &["Heart rate", "92", "/min", ""]),
        (&plain, &["Creatinine clearance", "45", "mL/min", ""]),
        (&plain, &["Sodium (urine)", "20", "mmol/L", ""]),
        (&plain, &["Haemoglobin"]),
        (&plain, &[]),
        (&["Name", "Colour"], &["Haemoglobin", "104"]),
        (&[], &["Haemoglobin", "104"]),
    ];
    let told: Vec<String> = tables
        .iter()
        .map(|(headers, cells)| {
            format!(
                "{} -> {}",
                cells.join(" | "),
                results::row(headers, cells, &WORDS)
                    .map_or_else(|| "refused".to_owned(), |result| told_result(&result))
            )
        })
        .collect();
    expect![[r#"
        Haemoglobin | 104 | g/L | 130–170 -> Haemoglobin = 104 g/L [130–170: Some(130.0) to Some(170.0)]
        Hemoglobin | 104 L | g/L | 130–170 -> Hemoglobin = 104 g/L [130–170: Some(130.0) to Some(170.0)]
        WBC count | 12.3 ↑ | ×10⁹/L | 4–10 -> WBC = 12.3 ×10⁹/L [4–10: Some(4.0) to Some(10.0)]
        C-reactive protein (CRP) | H 62 | mg/L | <5 -> C-reactive protein = 62 mg/L [<5: None to Some(5.0)]
        Troponin I | <0.01 | ng/mL | < 0.04 ng/mL -> Troponin I = <0.01 as "<0.01" ng/mL [< 0.04 ng/mL: None to Some(0.04)]
        Sodium | 128 (L) | mmol/L |  -> Sodium = 128 mmol/L
        Urine sodium | 20* | mmol/L | - -> Urine sodium = 20 mmol/L
        pH | 7.32 | - | 7.35-7.45 -> pH = 7.32 [7.35-7.45: Some(7.35) to Some(7.45)]
        INR | 1.2 |  | 0.8–1.2 -> INR = 1.2 [0.8–1.2: Some(0.8) to Some(1.2)]
        Potassium | 5.9 mmol/L |  | 3.5-5.1 mmol/L -> Potassium = 5.9 mmol/L [3.5-5.1 mmol/L: Some(3.5) to Some(5.1)]
        Creatinine | 2.1 | mg/dL | men 0.7–1.2 -> Creatinine = 2.1 mg/dL [men 0.7–1.2: None to None]
        Haemoglobin (g/L) | 104 | 98 | 130–170 -> Haemoglobin = 104 g/L [130–170: Some(130.0) to Some(170.0)] day 0
        White blood cells, ×10⁹/L | 12.3 | 9.0 | 4.0–10.0 -> White blood cells = 12.3 ×10⁹/L [4.0–10.0: Some(4.0) to Some(10.0)] day 0
        AST (SGOT) | 120 | 80 | up to 40 -> AST = 120 [up to 40: None to Some(40.0)] day 0
        Creatinine | 2.1 -> Creatinine = 2.1 mg/dL
        Albumin (g/dL) | 2.8 | 3.5–5.0 -> Albumin = 2.8 g/dL [3.5–5.0: Some(3.5) to Some(5.0)] day 0
        LDH | 480 U/L | 135-225 U/L -> LDH = 480 U/L [135-225 U/L: Some(135.0) to Some(225.0)]
        Platelet count (per mm3) | 150,000–400,000 | 98,000 -> Platelet = 98000 as "98,000" per mm3 [150,000–400,000: Some(150000.0) to Some(400000.0)] day 0
        Haemoglobin | 104 | kg | 130–170 -> refused
        Haemoglobin | low | g/L | 130–170 -> refused
        Haemoglobin | 104–110 | g/L | 130–170 -> refused
        Haemoglobin | 104 g/dL | g/L | 130–170 -> refused
        Blood culture | positive |  |  -> refused
        Heart rate | 92 | /min |  -> refused
        Creatinine clearance | 45 | mL/min |  -> refused
        Sodium (urine) | 20 | mmol/L |  -> refused
        Haemoglobin -> refused
         -> refused
        Haemoglobin | 104 -> refused
        Haemoglobin | 104 -> refused"#]].assert_eq(&told.join("\n"));
}

#[test]
fn vitals_of_tables() {
    let headers = ["Vital sign", "On admission", "Unit"];
    let rows: [&[&str]; 10] = [
        &["Heart rate", "92", "beats/min"],
        &["Blood pressure", "128/76", "mmHg"],
        &["BP (mmHg)", "128/76", ""],
        &["Temperature", "38.4 H", "°C"],
        &["Temperature (°F)", "101.1", ""],
        &["SpO2", "94%", ""],
        &["Weight", "68", ""],
        &["Blood pressure", "128/76", "kg"],
        &["Haemoglobin", "104", "g/L"],
        &["Heart rate", "", ""],
    ];
    let told: Vec<String> = rows
        .iter()
        .map(|cells| {
            let found: Vec<String> = vitals::row(&headers, cells, &WORDS)
                .iter()
                .map(|(vital, at)| format!("{} at {at}, day {:?}", told_vital(vital), vital.day))
                .collect();
            format!("{} -> {}", cells.join(" | "), found.join("; "))
        })
        .collect();
    expect![[r#"
        Heart rate | 92 | beats/min -> HeartRate 92 /min AsStated (92) at 1, day Some(0.0)
        Blood pressure | 128/76 | mmHg -> SystolicBloodPressure 128 mm[Hg] AsStated (128/76) at 1, day Some(0.0); DiastolicBloodPressure 76 mm[Hg] AsStated (128/76) at 1, day Some(0.0)
        BP (mmHg) | 128/76 |  -> SystolicBloodPressure 128 mm[Hg] AsStated (128/76) at 1, day Some(0.0); DiastolicBloodPressure 76 mm[Hg] AsStated (128/76) at 1, day Some(0.0)
        Temperature | 38.4 H | °C -> Temperature 38.4 Cel AsStated (38.4) at 1, day Some(0.0)
        Temperature (°F) | 101.1 |  -> Temperature 38.4 Cel Converted (101.1) at 1, day Some(0.0)
        SpO2 | 94% |  -> OxygenSaturation 94 % AsStated (94%) at 1, day Some(0.0)
        Weight | 68 |  -> Weight none kg Text (68) at 1, day Some(0.0)
        Blood pressure | 128/76 | kg -> SystolicBloodPressure none mm[Hg] Text (128/76) at 1, day Some(0.0); DiastolicBloodPressure none mm[Hg] Text (128/76) at 1, day Some(0.0)
        Haemoglobin | 104 | g/L -> 
        Heart rate |  |  -> "#]].assert_eq(&told.join("\n"));
}

#[test]
fn columns_by_their_words() {
    let tables: [&[&str]; 9] = [
        &["Test", "Result", "Unit", "Reference range"],
        &["Parameter", "Units", "Normal", "Admission", "Discharge"],
        &["Item", "Test result", "Reference interval"],
        &["", "On admission", "Normal range"],
        &["Laboratory values", "At presentation"],
        &["Test"],
        &["Value", "Unit"],
        &["Author", "Year", "Age"],
        &[],
    ];
    let told: Vec<String> = tables
        .iter()
        .map(|headers| {
            let found = columns(headers, &WORDS);
            format!(
                "{} -> {}",
                headers.join(" | "),
                found.map_or_else(
                    || "none".to_owned(),
                    |found| format!(
                        "test {} value {} unit {:?} reference {:?}",
                        found.test, found.value, found.unit, found.reference
                    )
                )
            )
        })
        .collect();
    expect![[r#"
        Test | Result | Unit | Reference range -> test 0 value 1 unit Some(2) reference Some(3)
        Parameter | Units | Normal | Admission | Discharge -> test 0 value 3 unit Some(1) reference Some(2)
        Item | Test result | Reference interval -> test 0 value 1 unit None reference Some(2)
         | On admission | Normal range -> test 0 value 1 unit None reference Some(2)
        Laboratory values | At presentation -> test 0 value 1 unit None reference None
        Test -> none
        Value | Unit -> none
        Author | Year | Age -> none
         -> none"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn a_wrong_lexicon_is_refused() {
    let changes = [
        ("version = 1", "version = 2"),
        ("version = 1", "version = 1\nother = 3"),
        ("low = 20.0\nhigh = 46.0", "low = 46.0\nhigh = 20.0"),
        ("kind = \"pain\"", "kind = \"height\""),
        ("words = [\"ferritin\"]", "words = [\"transferrin\"]"),
        ("words = [\"ferritin\"]", "words = []"),
        ("\"@mass\", \"pmol/L\"", "\"@mess\""),
        ("bare = [\"/min\"]", "bare = [\"kg\"]"),
        ("words = [\"kPa\"", "words = [\"mmHg\""),
        ("words = [\"kPa\"", "words = [\"\""),
        ("test = [", "test = []\nvalues = ["),
        ("words = [\"mol\"", "words = [\"MMOL\""),
    ];
    let told: Vec<String> = changes
        .iter()
        .map(|(from, to)| {
            assert!(LEXICON.contains(from), "{from}");
            let error = ClinicalWords::parse("clinical.toml", &LEXICON.replacen(from, to, 1)).map(|_| ());
            error.map_or_else(
                |error| format!("{error:#}").lines().last().unwrap_or_default().to_owned(),
                |()| format!("{to}: accepted"),
            )
        })
        .collect();
    expect![[r#"
        clinical.toml: version 2 is not known, it must be 1
        unknown field `other`, expected one of `version`, `unit`, `counted`, `vital`, `blood_pressure`, `prose`, `columns`, `unit_groups`, `analyte`
        clinical.toml: vital Temperature: 46 to 20 is no interval
        clinical.toml: vital Height is given twice
        clinical.toml: name "transferrin" is given twice
        clinical.toml: analyte "ferritin": it has no words
        clinical.toml: analyte "ferritin": there is no group of units "mess"
        clinical.toml: vital HeartRate: "kg" cannot be converted to "/min"
        clinical.toml: unit "kPa": "mmHg" is another unit as well
        clinical.toml: unit "kPa": a word is blank
        unknown field `values`, expected one of `test`, `value`, `unit`, `reference`
        clinical.toml: unit "mmol": "mmol" is another unit in another case"#]].assert_eq(&told.join("\n"));
}

/// Pieces of which texts are made that come near to what is read.
fn prose() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "blood pressure",
        "BP",
        "haemoglobin",
        "CRP",
        "(",
        ")",
        "sodium",
        "128",
        "128/76",
        "mmHg",
        " ",
        " ",
        " ",
        "g/L",
        "× 10⁹/L",
        "°C",
        "of",
        "was",
        "reference range",
        "–",
        ",",
        ".",
        "-",
        "<",
        "5.9",
        "temperature",
        "weight",
        "kg",
        "respectively",
        "and",
        "µ",
        "é",
        "\u{a0}",
        "\n",
        "normal",
        "[",
        "]",
        "5'8\"",
        "pH",
        "urine",
        "%",
        "/",
        "10^",
        "per",
        "⁻¹",
        "İ",
        "ß",
        "\u{ad}",
        "height",
        "SpO2",
        "; ",
        "base excess",
        "−",
        "1,234",
    ]);
    prop::collection::vec(pieces, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn conversions_lead_back(value in -1000.0..1000.0_f64, pair in prop::sample::select(vec![
        ("[degF]", "Cel"), ("K", "Cel"), ("[degF]", "K"), ("[lb_av]", "kg"), ("[stone_av]", "kg"), ("g", "[oz_av]"), ("[in_i]", "cm"), ("[ft_i]", "m"), ("kPa", "mm[Hg]"), ("/s", "/min"),
    ])) {
        let (from, to) = pair;
        let there = convert(value, from, to).unwrap();
        let back = convert(there, to, from).unwrap();
        prop_assert!((back - value).abs() < 1e-5, "{value} {from} = {there} {to} = {back}");
    }

    #[test]
    fn a_vital_is_within_its_bounds_or_has_no_value(number in prop::num::f64::ANY, unit in prop::option::of("(°?[CFK]|kg|lb|cm|in|m|%|bpm|mmHg|kPa|\\PC{0,6})")) {
        for (kind, rule) in &WORDS.vitals {
            let vital = vital(*kind, number, unit.as_deref(), "raw", &WORDS);
            prop_assert_eq!(&vital.unit, &rule.unit);
            match vital.value {
                Some(value) => prop_assert!((rule.low..=rule.high).contains(&value) && !matches!(vital.state, ValueState::Text | ValueState::OutOfBounds)),
                None => prop_assert!(matches!(vital.state, ValueState::Text | ValueState::OutOfBounds)),
            }
        }
    }

    #[test]
    fn every_range_is_what_it_says(text in prop_oneof![prose(), "\\PC{0,60}"]) {
        for (vital, range) in vitals_in(&text, &WORDS) {
            prop_assert_eq!(text.get(range), Some(vital.raw.as_str()));
        }
        let mut end = 0;
        for (result, range) in results_in(&text, &WORDS) {
            prop_assert!(range.start >= end, "results overlap");
            end = range.end;
            let words = text.get(range).unwrap();
            prop_assert!(words.starts_with(&result.name));
            for part in [&result.value_text, &result.unit, &result.reference_text].into_iter().flatten() {
                prop_assert!(words.contains(part.as_str()), "{part:?} in {words:?}");
            }
            prop_assert!(result.value.is_some_and(f64::is_finite));
        }
    }

    #[test]
    fn any_row_is_read(headers in prop::collection::vec(prose(), 0..5), cells in prop::collection::vec(prose(), 0..5)) {
        results::row(&headers, &cells, &WORDS);
        vitals::row(&headers, &cells, &WORDS);
        let headers = ["Test", "Result", "Unit", "Reference"].map(str::to_owned);
        if let Some(result) = results::row(&headers, &cells, &WORDS) {
            prop_assert!(cells[1].contains(&result.value_text.unwrap()));
        }
        for (vital, at) in vitals::row(&headers, &cells, &WORDS) {
            prop_assert_eq!(at, 1);
            prop_assert!(cells[1].contains(&vital.raw));
        }
    }

    #[test]
    fn any_text_is_a_unit_or_none(text in prop_oneof![prose(), "\\PC{0,20}"]) {
        if let Some(unit) = ucum(&text, &WORDS) {
            prop_assert!(!unit.is_empty() && unit.is_ascii());
        }
        blood_pressure(&text, &WORDS);
        vital_of_text(VitalKind::Height, &text, Some(&text), &WORDS);
    }
}
