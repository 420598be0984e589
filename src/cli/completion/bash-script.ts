import { allCommands, type CompletedCommand, type Value } from './command-tree.ts';

/** For bash 4 and later; bash 3.2 completes everything but files. */
export function bashScript(root: CompletedCommand): string {
  const commands = allCommands(root);
  return `# bash completion for redrive, written by \`redrive completion bash\`

# Whether the words are a command.
_redrive_is_command() {
  case "$1" in
    ${commands.map(({ path }) => `'${path}'`).join(' | \\\n    ')}) return 0 ;;
  esac
  return 1
}

# What follows a command: its subcommands or the values of its next argument.
_redrive_next() {
  case "$1:$2" in
${commands.flatMap(nextCases).join('\n')}
  esac
}

_redrive_options() {
  case "$1" in
${commands.map(({ path, options }) => `    '${path}') echo '${options.flatMap(({ names }) => names).join(' ')}' ;;`).join('\n')}
  esac
}

# The values of an option; fails if the option takes none.
_redrive_values() {
  case "$1" in
${commands.flatMap(valueCases).join('\n')}
    *) return 1 ;;
  esac
}

_redrive_reply() {
  COMPREPLY=()
  case "$1" in
    '<file>' | '<folder>') compopt -o default 2>/dev/null ;;
    *) COMPREPLY=($(compgen -W "$1" -- "$2")) ;;
  esac
}

${walk}`;
}

/** Finds the command on the line, and completes the word at the cursor. */
const walk = `_redrive() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" command='redrive' option='' given=0 i word
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    # bash makes three words of --status=DEAD.
    if [[ $word == '=' ]]; then continue; fi
    if [[ -n $option ]]; then
      option=''
    elif [[ $word == -* ]]; then
      if _redrive_values "$command $word" >/dev/null; then option=$word; fi
    elif _redrive_is_command "$command $word"; then
      command="$command $word"
    elif [[ "$command $word" != 'redrive help' ]]; then
      given=$((given + 1))
    fi
  done
  if [[ $cur == '=' ]]; then cur=''; fi
  if [[ -n $option ]]; then
    _redrive_reply "$(_redrive_values "$command $option")" "$cur"
  elif [[ $cur == -* ]]; then
    _redrive_reply "$(_redrive_options "$command")" "$cur"
  else
    _redrive_reply "$(_redrive_next "$command" "$given")" "$cur"
  fi
}

complete -F _redrive redrive
`;

function nextCases({ path, children, args }: CompletedCommand): readonly string[] {
  if (children.length > 0)
    return [`    '${path}':0) echo '${children.map(({ name }) => name).join(' ')}' ;;`];
  return args.flatMap((value, i) =>
    value.kind === 'text' ? [] : [`    '${path}':${i}) echo '${wordsOf(value)}' ;;`],
  );
}

function valueCases({ path, options }: CompletedCommand): readonly string[] {
  return options.flatMap(({ names, value }) =>
    value === null
      ? []
      : [`    ${names.map((name) => `'${path} ${name}'`).join(' | ')}) echo '${wordsOf(value)}' ;;`],
  );
}

function wordsOf(value: Value): string {
  if (value.kind === 'words') return value.words.join(' ');
  return value.kind === 'text' ? '' : `<${value.kind}>`;
}
