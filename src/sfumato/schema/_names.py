"""The words that column names are made of, in the languages of common tables.

English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Russian, Chinese and Japanese, without
accents and in lower case, as `words_of` gives them.
"""

from __future__ import annotations

__all__ = [
    "ASKING",
    "BEGINNING",
    "COUNTED",
    "DAYS",
    "ENDINGS",
    "HEADINGS",
    "IDENTIFIERS",
    "IDS",
    "JOINERS",
    "LEADING",
    "MEASURED",
    "NUMBERS",
    "OWN_NUMBERS",
    "PEOPLE",
    "PERIODS",
    "QUASI",
    "SENSITIVE",
    "SURE",
    "TRUTHS",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Whose data it may be.
PEOPLE = _words(
    """
    user users patient patients person persons people customer customers client clients member members
    employee employees student students subject subjects participant participants respondent household
    citizen resident passenger driver rider worker donor voter pupil child subscriber guest visitor
    kunde kunden patientin nutzer benutzer mitarbeiter schueler teilnehmer mitglied haushalt fahrer
    borrower tenant debtor insured reader applicant
    buerger utilisateur usager personne adherent eleve etudiant foyer assure salarie beneficiaire
    usuario paciente cliente persona empleado alumno estudiante socio hogar utente paziente dipendente
    studente pessoa funcionario aluno klant gebruiker medewerker leerling klient pacjent uzytkownik
    pracownik пользователь пациент клиент сотрудник студент 用户 患者 客户 会员 员工 学生 病人 ユーザー
    顧客 会員 社員
    """
)
# What marks a number as the name of one thing.
IDS = _words(
    """
    guid hash id ident identifiant identificador identificativo identifier ids kennung pseudonym token
    uid uuid 编号
    """
)
# Weaker marks: a number, unless something says otherwise.
NUMBERS = _words(
    """
    code kennzeichen key nbr no nr num number numer numero nummer номер 号 番号
    """
)
# Numbers that a person has from an authority.
OWN_NUMBERS = _words(
    """
    ssn sin nin nino nhs nir insee dni nie nif nss cpf rut curp pesel bsn svnr svnummer steuerid
    steuernummer fiscale codicefiscale passport passeport reisepass pasaporte passaporto licence
    driverslicense mrn socialsecurity taxid aadhaar инн снилс паспорт 身份证 身份证号 护照 マイナンバー
    """
)
# What points at one person or can reach them.
IDENTIFIERS = _words(
    """
    uuid guid email mail emailaddress courriel correo posta phone telephone telefon telefono telefone
    tel mobile handy portable movil celular cellulare fax name names fullname firstname lastname surname
    forename givenname familyname middlename username nickname login nom prenom noms vorname nachname
    familienname nombre nombres apellido apellidos cognome sobrenome naam voornaam achternaam imie
    nazwisko address street strasse hausnummer adresse rue direccion calle indirizzo endereco adres
    ulica iban bic konto kontonummer account compte cuenta card creditcard kreditkarte carte tarjeta ip
    ipaddress mac imei imsi device deviceid cookie plate licenseplate immatriculation matricula vin url
    photo signature fingerprint имя фамилия отчество телефон почта адрес логин счет 姓名 名字 电话 手机
    手机号 邮箱 地址 住址 账号 氏名 名前 電話 電話番号 住所 メール
    """
)
# What narrows down who it is.
QUASI = _words(
    """
    age alter edad eta idade leeftijd wiek lebensalter birth birthday birthdate birthyear dob yob born
    geburt geburtsdatum geburtsjahr geburtstag naissance nacimiento nascita nascimento geboortedatum
    urodzenia sex gender geschlecht sexe sexo sesso genre genero geslacht plec zip zipcode postcode
    postal postalcode plz postleitzahl cp cap cep city town village stadt ort wohnort ville commune
    ciudad citta cidade municipio gemeente miasto region county district province provincia kreis
    bundesland departement canton state country land pays pais paese kraj nationality nationalitaet
    nationalite nacionalidad citizenship race ethnicity ethnic ethnie raza herkunft origin birthplace
    geburtsort occupation job profession beruf metier ocupacion profesion mestiere profissao zawod
    employer arbeitgeber employeur education bildung etudes educacion degree abschluss school schule
    ecole escuela marital married familienstand civil language sprache langue idioma lingua lat latitude
    lon lng long longitude breitengrad laengengrad location lieu height weight groesse gewicht taille
    poids altura peso children kinder enfants hijos housing возраст пол город регион страна рождения
    профессия индекс 年龄 性别 城市 出生 出生日期 邮编 省份 国家 职业 民族 年齢 性別 都道府県 市区町村
    生年月日 職業 郵便番号 国籍
    """
)
# What nobody should learn about a person.
SENSITIVE = _words(
    """
    diagnosis diagnoses diagnose diagnostic diagnostico diagnosi disease illness krankheit maladie
    enfermedad malattia doenca icd icd10 icd9 condition symptom symptoms treatment behandlung traitement
    tratamiento medication medicine medikament medicament drug prescription rezept ordonnance procedure
    surgery therapy hiv std pregnancy pregnant disability behinderung handicap discapacidad genome
    genotype dna gene blood glucose cholesterol bmi smoker alcohol mental depression suicide test result
    befund salary salaries wage wages income earnings pay gehalt lohn einkommen verdienst salaire revenu
    revenus sueldo salario ingresos ingreso stipendio reddito renda inkomen salaris dochod cost costs
    kosten cout coste costo custo amount betrag montant importe importo valor spend spending expense
    expenses ausgaben depense gasto payment zahlung paiement pago charge charges balance saldo solde
    debt schulden dette deuda credit kredit score rating loan mortgage wealth vermoegen asset tax steuer
    religion konfession belief glaube party partei parti partido vote wahl politics political union
    gewerkschaft orientation sexuality crime conviction arrest straftat offence offense grade grades
    note notes marks gpa diagnostics диагноз болезнь зарплата доход лечение религия 诊断 疾病 病 工资
    收入 薪水 金额 宗教 成绩 診断 病名 給与 収入 金額
    """
)
# What is a whole number.
COUNTED = _words(
    """
    year jahr annee ano anno jaar rok
    age alter edad eta idade count number num nb anzahl nombre cantidad quantity qty menge days years
    年龄 年齢
    """
)
# What says when, and as the last word of a name makes it a time: the year of a loan is not a loan.
PERIODS = _words(
    """
    year jahr annee ano anno jaar rok month monat mois mes mese maand quarter quartal trimestre week woche
    semaine semana settimana год месяц 年 年份 年度 月 月份
    """
)
# What is a fraction.
MEASURED = _words(
    """
    amount cost costs price salary income wage total sum betrag preis kosten montant prix revenu importe
    """
)
# What is a day.
DAYS = _words(
    """
    date day datum jour fecha data dia giorno timestamp dob birthdate birthday geburtsdatum datetime
    日期 日付
    """
)
# What is a truth value.
TRUTHS = _words(
    """
    is has was flag active deleted enabled ist hat est tiene
    """
)
# What a question begins with: the rest of the name is asked.
ASKING = _words("is has was ist hat tiene")
# What says the type of a name at its beginning, where nouns lead: fecha_ingreso, num_visits, prix_total.
LEADING = _words("anzahl cantidad fecha importe montant nb nombre num number prix revenu sum total")
# The same, and elsewhere something else: bp_dia is a pressure.
BEGINNING = _words("dia eta giorno jour")
# What is the name of a column beside all these.
HEADINGS = _words(
    """
    admission admitted category class clinic color colour count department description discharge
    discharged doctor duration end event fare first flag gain gains group height hospital hour hours index
    invoice item kind label last latitude length level longitude loss margin measure minutes order percent
    percentage period points policy position price product quantity rank rate ratio reason revenue room
    seconds sensor size source start status stay temperature ticket time title transaction type units
    value version visit visits ward width
    """
)
# What is the name of a column and hardly ever a value in one, nor anybody's name. Words that are both, such
# as disease, ward, price, street, email or city, are not here.
SURE = _words(
    """
    guid id ident identifiant identificador identifier ids kennung uid uuid 编号
    nbr nr num number numer numero nummer номер 番号
    ssn mrn svnr svnummer steuernummer codicefiscale снилс 身份证号
    emailaddress name names fullname firstname lastname surname forename givenname familyname middlename
    username nickname prenom vorname nachname familienname nombre nombres apellido apellidos cognome
    sobrenome voornaam achternaam nazwisko address adresse indirizzo endereco direccion hausnummer
    kontonummer ipaddress deviceid licenseplate имя фамилия отчество адрес 姓名 氏名 名前 電話番号 手机号
    住所 地址
    age edad idade leeftijd lebensalter birthdate birthyear dob yob geburtsdatum geburtsjahr naissance
    nacimiento nascita nascimento geboortedatum urodzenia sex gender geschlecht sexe sexo sesso genero
    geslacht plec zip zipcode postcode postalcode plz postleitzahl wohnort bundesland nationality
    nationalitaet nationalite nacionalidad citizenship ethnicity marital familienstand occupation beruf
    latitude longitude laengengrad breitengrad height groesse возраст пол рождения индекс 年龄 性别
    出生日期 邮编 年齢 性別 生年月日 郵便番号
    icd icd10 icd9 salary income gehalt einkommen salaire revenu revenus sueldo salario ingresos stipendio
    reddito inkomen salaris dochod cost costs kosten amount betrag montant importe importo gpa зарплата
    доход 工资 收入 金额 給与 収入 金額
    datum dateofbirth fecha timestamp datetime 日期 日付
    anzahl count duration fare length percentage quantity qty width
    """
)
# What as the last word of several makes them a name: visit_date, room no, education_num.
ENDINGS = _words(
    """
    id ids uid uuid no nr num nbr number nummer code date datum timestamp datetime name count length width
    latitude longitude
    """
)
# What stands between the words of a name.
JOINERS = _words(
    """
    of in per by for at to on the and a from since until avg mean min max
    de du des la le les del der die das den von vom zum zur im am pro je par por di da do van het und et y
    cm mm km kg mg ml eur euro usd gbp chf pct
    """
)
