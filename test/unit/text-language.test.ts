/** The language of a text is told among those of the European model. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { findModel } from '../../src/models/catalogue.ts';
import { languageOfText } from '../../src/transcription/parakeet/text-language.ts';

const ALL = findModel('european')?.languages ?? [];

/** Each text is one or two sentences that a person may say. */
const SPOKEN: Record<string, [short: string, long: string]> = {
  bg: ['Утре ще отидем на пазар да купим хляб и сирене.', 'Не знам защо влакът закъснява всеки ден.'],
  cs: ['Zítra půjdeme na trh koupit chleba a sýr.', 'Nevím, proč má vlak každý den zpoždění.'],
  da: ['I morgen går vi på markedet for at købe brød.', 'Jeg er træt af at vente på perronen.'],
  de: ['Morgen gehen wir auf den Markt.', 'Ich weiß nicht, warum der Zug jeden Tag Verspätung hat.'],
  el: ['Αύριο θα πάμε στην αγορά.', 'Δεν ξέρω γιατί το τρένο καθυστερεί κάθε μέρα.'],
  en: ['Tomorrow we are going to the market.', "I don't know why the train is late every day."],
  es: ['Mañana vamos al mercado a comprar pan.', 'No sé por qué el tren se retrasa todos los días.'],
  et: ['Homme läheme turule leiba ja juustu ostma.', 'Ma ei tea, miks rong iga päev hilineb.'],
  fi: ['Huomenna menemme torille ostamaan leipää.', 'En tiedä, miksi juna on joka päivä myöhässä.'],
  fr: ['Demain, nous irons au marché acheter du pain.', 'Je ne sais pas pourquoi le train est en retard.'],
  hr: ['Sutra idemo na tržnicu kupiti kruh i sir.', 'Ne znam zašto vlak kasni svaki dan.'],
  hu: ['Holnap a piacra megyünk kenyeret venni.', 'Nem tudom, miért késik minden nap a vonat.'],
  it: ['Domani andiamo al mercato a comprare il pane.', 'Non so perché il treno sia in ritardo.'],
  lt: ['Rytoj eisime į turgų pirkti duonos ir sūrio.', 'Nežinau, kodėl traukinys kasdien vėluoja.'],
  lv: ['Rīt mēs iesim uz tirgu pirkt maizi un sieru.', 'Es nezinu, kāpēc vilciens katru dienu kavējas.'],
  mt: ['Għada se mmorru s-suq biex nixtru l-ħobż.', 'Ma nafx għaliex il-ferrovija ddum kuljum.'],
  nl: ['Morgen gaan we naar de markt om brood te kopen.', 'Ik weet niet waarom de trein te laat is.'],
  pl: ['Jutro pójdziemy na targ kupić chleb i ser.', 'Nie wiem, dlaczego pociąg codziennie się spóźnia.'],
  pt: ['Amanhã vamos ao mercado comprar pão e queijo.', 'Não sei por que o trem atrasa todos os dias.'],
  ro: ['Mâine mergem la piață să cumpărăm pâine.', 'Nu știu de ce trenul întârzie în fiecare zi.'],
  ru: ['Завтра мы пойдём на рынок купить хлеб и сыр.', 'Я не знаю, почему поезд каждый день опаздывает.'],
  sk: ['Zajtra pôjdeme na trh kúpiť chlieb a syr.', 'Neviem, prečo vlak každý deň mešká.'],
  sl: ['Jutri gremo na tržnico kupit kruh in sir.', 'Ne vem, zakaj vlak vsak dan zamuja.'],
  sv: ['I morgon går vi till marknaden för att köpa bröd.', 'Jag vet inte varför tåget är försenat.'],
  uk: ['Завтра ми підемо на ринок купити хліб і сир.', 'Я не знаю, чому потяг щодня запізнюється.'],
};

test('every language of the model has its row here', () => {
  assert.deepEqual(Object.keys(SPOKEN).sort(), [...ALL].sort());
});

for (const [code, [first, second]] of Object.entries(SPOKEN)) {
  test(`${code} is told from two sentences`, () => {
    const told = languageOfText(`${first} ${second}`, ALL);
    assert.equal(told?.language, code);
    assert(told.probability > 0.99 && told.probability <= 1, String(told.probability));
  });
}

test('a single sentence is hardly ever left without a language, and is never given a wrong one', () => {
  const rows = Object.entries(SPOKEN).flatMap(([code, texts]) => texts.map((text) => ({ code, text })));
  const untold = rows.filter(({ text }) => languageOfText(text, ALL) === undefined);
  assert(untold.length <= 1, untold.map(({ text }) => text).join('\n'));
  for (const { code, text } of rows.filter((row) => !untold.includes(row)))
    assert.equal(languageOfText(text, ALL)?.language, code, text);
});

test('a text that many languages share, that is too short, or that is none has no language', () => {
  for (const text of ['', ' ', '.', '…', '42', 'Yes.', 'No.', 'Ja.', 'Si.', 'OK', '♪', '你好'])
    assert.equal(languageOfText(text, ALL), undefined, text);
});

test('the language is told among the given languages alone', () => {
  const [slovak = ''] = SPOKEN.sk ?? [];
  assert.equal(languageOfText(slovak, ['cs', 'de'])?.language, 'cs');
  assert.equal(languageOfText(slovak, ['el', 'ru']), undefined);
  const [maltese = ''] = SPOKEN.mt ?? [];
  assert.notEqual(languageOfText(maltese, ['it', 'fr'])?.language, 'mt');
});

test('a Maltese name does not make a text Maltese', () => {
  const text =
    'We spent the first days of the holiday in Ħamrun, and then took the bus to the north of the island.';
  assert.equal(languageOfText(text, ALL)?.language, 'en');
});

test('every text gives one of the languages with its probability, or none', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), fc.subarray([...ALL]), (text, among) => {
      const told = languageOfText(text, among);
      if (told === undefined) return;
      assert(among.includes(told.language));
      assert(told.probability >= 0.8 && told.probability <= 1);
    }),
  );
});
