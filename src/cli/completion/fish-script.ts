import { allCommands, type CompletedCommand, type CompletedOption, type Value } from './command-tree.ts';

export function fishScript(root: CompletedCommand): string {
  const commands = allCommands(root);
  return `# fish completion for redrive, written by \`redrive completion fish\`

# The command on the line and the number of its arguments before the cursor.
function __redrive_line
    set -l command redrive
    set -l option ''
    set -l given 0
    for word in (commandline -opc)[2..]
        if test -n "$option"
            set option ''
        else if string match -q -- '-*' $word
            if __redrive_takes_value "$command $word"
                set option $word
            end
        else if __redrive_is_command "$command $word"
            set command "$command $word"
        else if test "$command $word" != 'redrive help'
            set given (math $given + 1)
        end
    end
    echo "$command:$given"
end

function __redrive_is_command
    contains -- $argv[1] ${commands.map(({ path }) => quoted(path)).join(' ')}
end

function __redrive_takes_value
    contains -- $argv[1] ${commands.flatMap(valueOptions).map(quoted).join(' ')}
end

function __redrive_in
    string match -q -- "$argv[1]:*" (__redrive_line)
end

function __redrive_next
    test (__redrive_line) = $argv[1]
end

complete -c redrive -f
${commands.flatMap(linesOf).join('\n')}
`;
}

function linesOf(command: CompletedCommand): readonly string[] {
  const { path, children, options, args } = command;
  return [
    ...children.map(({ name, text }) => line(`__redrive_next '${path}:0'`, `-a ${name} -d ${quoted(text)}`)),
    ...args.flatMap((value, i) =>
      value.kind === 'text' ? [] : [line(`__redrive_next '${path}:${i}'`, valueFlags(value))],
    ),
    ...options.map((option) => line(`__redrive_in '${path}'`, optionFlags(option))),
  ];
}

function line(condition: string, rest: string): string {
  return `complete -c redrive -n ${quoted(condition)} ${rest}`;
}

function optionFlags({ names, text, value }: CompletedOption): string {
  const flags = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  const more = value === null ? [] : [value.kind === 'text' ? '-x' : `-r ${valueFlags(value)}`];
  return [...flags, ...more, `-d ${quoted(text)}`].join(' ');
}

function valueFlags(value: Value): string {
  if (value.kind === 'words') return `-f -a ${quoted(value.words.join(' '))}`;
  return value.kind === 'folder' ? "-f -a '(__fish_complete_directories)'" : '-F';
}

function valueOptions({ path, options }: CompletedCommand): readonly string[] {
  return options.flatMap(({ names, value }) =>
    value === null ? [] : names.map((name) => `${path} ${name}`),
  );
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
