import { parseSync, Visitor } from 'oxc-parser';

/** What the architecture rules want to know of a module's text. */
export type ModuleFacts = Readonly<{
  /** Specifiers of static and dynamic imports and of re-exports, types included. */
  imports: readonly string[];
  hasDefaultExport: boolean;
  readsEnvironment: boolean;
  isReadable: boolean;
  /** The longest function, in lines; 0 without one. */
  longestFunction: number;
}>;

export function readModuleFacts(path: string, text: string): ModuleFacts {
  const { module, program, errors } = parseSync(path, text);
  const imports = [
    ...module.staticImports.map((statement) => statement.moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.flatMap((entry) => entry.moduleRequest?.value ?? []),
    ),
  ];
  let readsEnvironment = module.staticImports.some(
    ({ moduleRequest, entries }) =>
      /^(node:)?process$/.test(moduleRequest.value) &&
      entries.some((entry) => entry.importName.name === 'env'),
  );
  let hasDefaultExport = false;
  let longestFunction = 0;
  const measure = ({ start, end }: Readonly<{ start: number; end: number }>) => {
    longestFunction = Math.max(longestFunction, text.slice(start, end).split('\n').length);
  };
  new Visitor({
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure,
    ExportDefaultDeclaration() {
      hasDefaultExport = true;
    },
    ExportSpecifier({ exported }) {
      if (exported.type === 'Identifier' && exported.name === 'default') hasDefaultExport = true;
    },
    ImportExpression({ source }) {
      if (source.type === 'Literal' && typeof source.value === 'string') imports.push(source.value);
    },
    TSImportType({ source }) {
      imports.push(source.value);
    },
    MemberExpression({ object, property }) {
      const isProcess = object.type === 'Identifier' && object.name === 'process';
      const isEnv =
        (property.type === 'Identifier' && property.name === 'env') ||
        (property.type === 'Literal' && property.value === 'env');
      if (isProcess && isEnv) readsEnvironment = true;
    },
    VariableDeclarator({ id, init }) {
      const takesApart =
        id.type === 'ObjectPattern' && init?.type === 'Identifier' && init.name === 'process';
      if (takesApart && /\benv\b/.test(text.slice(id.start, id.end))) readsEnvironment = true;
    },
  }).visit(program);
  return { imports, hasDefaultExport, readsEnvironment, isReadable: errors.length === 0, longestFunction };
}
