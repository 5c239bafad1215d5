/**
 * `voxgate completion <shell>` prints a script that completes the commands, options, choices and model ids of this
 * program in bash, zsh or fish. The scripts hold all words, because a process for every press of Tab would be slow.
 */
import { Argument, type Command, type Option } from 'commander';
import { examples } from './options.ts';

interface Shown {
  /** The words of the command, such as `models pull`; empty for the program itself. */
  path: string;
  command: Command;
}

/** What a shell offers where a value is wanted. */
interface Values {
  words: readonly string[];
  /** What can be a file is completed by the shell itself. */
  files: boolean;
}

/** What is offered where a command wants the id of a model. */
interface ModelIds {
  /** The ids of all weights, which a folder may hold. */
  stored: readonly string[];
  /** The ids that a request may name. */
  requested: readonly string[];
}

export function registerCompletionCommand(program: Command, ids: ModelIds): void {
  program
    .command('completion')
    .description('print a shell completion script')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .action((shell: string) => {
      const commands = [...shownCommands(program)];
      process.stdout.write(shell === 'fish' ? fish(commands, ids) : bash(commands, ids, shell));
    })
    .addHelpText(
      'after',
      examples(
        'source <(voxgate completion bash)    # in ~/.bashrc',
        'source <(voxgate completion zsh)     # in ~/.zshrc, after compinit',
        'voxgate completion fish | source     # in ~/.config/fish/config.fish',
      ),
    );
}

/** Lists the program and all its commands that help shows, from the outside in. */
export function* shownCommands(command: Command, path = ''): Generator<Shown> {
  yield { path, command };
  for (const inner of command.createHelp().visibleCommands(command))
    if (inner.name() !== 'help') yield* shownCommands(inner, `${path} ${inner.name()}`.trim());
}

function optionsOf(command: Command): Option[] {
  return command.createHelp().visibleOptions(command);
}

function wordsOf(command: Command): string[] {
  const inner = command.createHelp().visibleCommands(command);
  return [...inner.map((each) => each.name()), ...optionsOf(command).flatMap(({ long }) => long ?? [])];
}

function valuesOf(wanted: Option | Argument, ids: ModelIds): Values {
  const name = wanted.name();
  if (wanted.argChoices !== undefined) return { words: wanted.argChoices, files: false };
  if (name === 'model') return { words: ids.requested, files: false };
  if (['id', 'ids'].includes(name)) return { words: ids.stored, files: false };
  const value = 'flags' in wanted ? wanted.flags : name;
  return { words: [], files: /dir|file|audio/.test(value) };
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

/** zsh runs the script of bash by its own bashcompinit. */
function bash(commands: readonly Shown[], ids: ModelIds, shell: string): string {
  const inner = commands.filter(({ path }) => path !== '').map(({ path }) => `'voxgate ${path}'`);
  const reply = ({ words, files }: Values, more: readonly string[] = []) => {
    const all = [...words, ...more].join(' ');
    // An empty reply lets the shell offer files.
    return files ? `[[ $cur == -* ]] && words='${all}'` : `words='${all}'; only=1`;
  };
  const values = commands.flatMap(({ path, command }) =>
    optionsOf(command)
      .filter(takesValue)
      .map((option) => {
        const line = `'${`voxgate ${path}`.trim()} ${option.long}'`;
        return `    ${line}) ${reply(valuesOf(option, ids))} ;;`;
      }),
  );
  const words = commands.map(({ path, command }) => {
    const [argument] = command.registeredArguments;
    const wanted = argument === undefined ? { words: [], files: false } : valuesOf(argument, ids);
    return `      '${`voxgate ${path}`.trim()}') ${reply(wanted, wordsOf(command))} ;;`;
  });
  return `${shell === 'zsh' ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_voxgate() {
  local cur=\${COMP_WORDS[COMP_CWORD]} command=voxgate words= only= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command \${COMP_WORDS[i]}" in
      ${inner.join('|')}) command+=" \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$command \${COMP_WORDS[COMP_CWORD-1]}" in
${values.join('\n')}
    *) case "$command" in
${words.join('\n')}
    esac ;;
  esac
  COMPREPLY=()
  [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$cur"))
  [[ -n $only ]] && compopt +o default 2>/dev/null
  return 0
}
complete -o default -F _voxgate voxgate
`;
}

function fish(commands: readonly Shown[], ids: ModelIds): string {
  const quoted = (text: string) => `'${text.replaceAll(/[\\']/g, '\\$&')}'`;
  const offer = ({ words, files }: Values) =>
    words.length > 0 ? `-xa ${quoted(words.join(' '))}` : files ? '-rF' : '-x';
  const lines = commands.flatMap(({ path, command }) => {
    const inner = command.createHelp().visibleCommands(command);
    const names = inner.map((each) => each.name());
    const seen = path.split(' ').filter((word) => word !== '');
    const here = [
      ...seen.map((word) => `__fish_seen_subcommand_from ${word}`),
      ...(names.length > 0 ? [`not __fish_seen_subcommand_from ${names.join(' ')}`] : []),
    ].join('; and ');
    const line = (rest: string) => `complete -c voxgate -n ${quoted(here || 'true')} ${rest}`;
    const [argument] = command.registeredArguments;
    const wanted = argument === undefined ? { words: [], files: false } : valuesOf(argument, ids);
    return [
      line(wanted.files ? '-F' : '-f'),
      ...inner.map((each) => line(`-a ${each.name()} -d ${quoted(each.summary() || each.description())}`)),
      ...(wanted.words.length > 0 ? [line(`-a ${quoted(wanted.words.join(' '))}`)] : []),
      ...optionsOf(command).map((option) => {
        const value = takesValue(option) ? ` ${offer(valuesOf(option, ids))}` : '';
        return line(`-l ${option.long?.slice(2)}${value} -d ${quoted(option.description)}`);
      }),
    ];
  });
  return `${lines.join('\n')}\n`;
}
