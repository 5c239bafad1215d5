/**
 * Writes a transcript as a document of Word (Office Open XML, ECMA-376), with the few parts that such a file must have.
 * Loaded with the library that zips it when the first is asked for.
 */
import { strToU8, zipSync } from '../vendor/fflate.js';
import { joined, shortTime, toParagraphs } from './captions.js';

const OPEN = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006';
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';
const TYPE = 'application/vnd.openxmlformats-officedocument.wordprocessingml';

const CONTENT_TYPES = `${OPEN}<Types xmlns="${PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="${TYPE}.document.main+xml"/><Override PartName="/word/styles.xml" ContentType="${TYPE}.styles+xml"/></Types>`;

const relation = (type, target) =>
  `${OPEN}<Relationships xmlns="${PACKAGE}/relationships"><Relationship Id="rId1" Type="${OFFICE}/${type}" Target="${target}"/></Relationships>`;

const STYLES = `${OPEN}<w:styles ${WORD}><w:docDefaults><w:pPrDefault><w:pPr><w:spacing w:after="120" w:line="276" w:lineRule="auto"/></w:pPr></w:pPrDefault></w:docDefaults><w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/><w:basedOn w:val="Normal"/><w:next w:val="Normal"/><w:pPr><w:keepNext/><w:outlineLvl w:val="0"/></w:pPr><w:rPr><w:b/><w:sz w:val="32"/></w:rPr></w:style></w:styles>`;

/** @returns {Uint8Array} */
export function toDocx(segments, title) {
  const rows = toParagraphs(segments).map((paragraph) => {
    const [{ speaker, start }] = paragraph;
    const who = speaker === undefined ? '' : run(`${speaker} `, '<w:b/>');
    const head = `<w:p><w:pPr><w:keepNext/><w:spacing w:after="0"/></w:pPr>${who}${run(shortTime(start), '<w:color w:val="5A5A5A"/><w:sz w:val="18"/>')}</w:p>`;
    const cells = segments[0].translation === undefined ? ['text'] : ['text', 'translation'];
    const texts = cells.map((field) => `<w:p>${run(joined(paragraph, field))}</w:p>`);
    return { head, texts };
  });
  const isPlain = rows.every(({ texts }) => texts.length === 1);
  const heading = `<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>${run(title)}</w:p>`;
  const body = isPlain ? rows.map(({ head, texts }) => head + texts[0]).join('') : toTable(rows);
  return zipSync({
    '[Content_Types].xml': strToU8(CONTENT_TYPES),
    '_rels/.rels': strToU8(relation('officeDocument', 'word/document.xml')),
    'word/_rels/document.xml.rels': strToU8(relation('styles', 'styles.xml')),
    'word/document.xml': strToU8(
      `${OPEN}<w:document ${WORD}><w:body>${heading}${body}<w:sectPr/></w:body></w:document>`,
    ),
    'word/styles.xml': strToU8(STYLES),
  });
}

/** Text and translation side by side, in halves of the width of a page. */
function toTable(rows) {
  const half = 4500; // twentieths of a point
  const cell = (content) => `<w:tc><w:tcPr><w:tcW w:w="${half}" w:type="dxa"/></w:tcPr>${content}</w:tc>`;
  const blank = '<w:p><w:pPr><w:spacing w:after="0"/></w:pPr></w:p>';
  const lines = rows.map(
    ({ head, texts: [text, translation] }) => `<w:tr>${cell(head + text)}${cell(blank + translation)}</w:tr>`,
  );
  const margins = '<w:tblCellMar><w:right w:w="240" w:type="dxa"/></w:tblCellMar>';
  const properties = `<w:tblPr><w:tblW w:w="${2 * half}" w:type="dxa"/><w:tblLayout w:type="fixed"/>${margins}</w:tblPr>`;
  const grid = `<w:tblGrid>${`<w:gridCol w:w="${half}"/>`.repeat(2)}</w:tblGrid>`;
  // A document ends with a paragraph, not with a table.
  return `<w:tbl>${properties}${grid}${lines.join('')}</w:tbl><w:p/>`;
}

function run(text, properties = '') {
  return `<w:r><w:rPr>${properties}</w:rPr><w:t xml:space="preserve">${escapeXml(text)}</w:t></w:r>`;
}

/** Characters that XML cannot hold are left out. */
function escapeXml(text) {
  return text
    .toWellFormed()
    .replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
