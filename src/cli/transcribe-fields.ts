/** The options of `voxgate transcribe` that are fields of the API: they have its names and its descriptions. */
import { readFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import type { z } from 'zod';
import type { ResponseFormat } from '../transcription/request.ts';
import { transcriptionFields } from '../wire/request.ts';

/** Fields as a form sends them. */
export type Fields = Readonly<Record<string, string | string[]>>;

/** Those without a value. Texts come as a whole, so `stream` is no option. */
const SWITCHES = ['translate', 'diarize'];
const LEFT_OUT = ['stream', 'known_speaker_names', 'known_speaker_references'];
const DEFAULT_FORMAT: ResponseFormat = 'text';
/** What differs on a command line. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  response_format: 'json, text (default), srt, vtt, verbose_json or diarized_json; --format is the same',
  chunking_strategy: 'voice activity detection: auto (default), or an object as JSON',
};

const fields = Object.entries(transcriptionFields as Record<string, z.ZodType>).filter(
  ([name]) => !LEFT_OUT.includes(name),
);
const isList = (schema: z.ZodType) => schema.def.type === 'array';
const toFlag = (name: string) => `--${name.replaceAll('_', '-')}`;

export function addFieldOptions(command: Command): void {
  const collect = (value: string, before: string[] = []) => [...before, value];
  for (const [name, schema] of fields) {
    const description = (schema.description ?? '').replaceAll('`', '');
    if (SWITCHES.includes(name)) command.addOption(new Option(toFlag(name), withoutValues(description)));
    else if (isList(schema))
      command.addOption(
        new Option(`${toFlag(name)} <value>`, `${description}; may be repeated`).argParser(collect),
      );
    else command.addOption(new Option(`${toFlag(name)} <value>`, OTHER_WORDS[name] ?? description));
  }
  command.addOption(new Option('--format <value>', 'what people type for --response-format').hideHelp());
  command.addOption(
    new Option('--speaker <name=file>', 'a speaker, and 2 to 10 s of the voice; may be repeated').argParser(
      collect,
    ),
  );
}

const withoutValues = (description: string) => description.replace(/^1 on true yes y: /, '');

/** @param options those that commander has parsed */
export async function fieldsIn(options: Readonly<Record<string, unknown>>): Promise<Fields> {
  const given = fields.flatMap(([name]) => {
    const value = options[new Option(toFlag(name)).attributeName()];
    if (value === undefined) return [];
    return [[name, value === true ? 'true' : value] as const];
  });
  const speakers = (options.speaker as string[] | undefined) ?? [];
  return {
    response_format: (options.format as string | undefined) ?? DEFAULT_FORMAT,
    ...(Object.fromEntries(given) as Record<string, string | string[]>),
    ...(speakers.length > 0 && {
      known_speaker_names: speakers.map((speaker) => speaker.slice(0, cut(speaker))),
      known_speaker_references: await Promise.all(speakers.map(reference)),
    }),
  };
}

export const formatIn = (fields: Fields): ResponseFormat => fields.response_format as ResponseFormat;

function cut(speaker: string): number {
  const at = speaker.indexOf('=');
  if (at < 1) throw new Error(`--speaker ${speaker}: expected a name, = and a file`);
  return at;
}

async function reference(speaker: string): Promise<string> {
  const sound = await readFile(speaker.slice(cut(speaker) + 1));
  return `data:application/octet-stream;base64,${sound.toString('base64')}`;
}
