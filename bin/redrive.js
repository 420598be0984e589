#!/usr/bin/env node
// Starts the command line: in a clone the sources, whatever was built of them before, else the built package. This file alone must also be understood by
// an older Node, which then hands over to the Node that is installed beside the package, or says what is missing.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const NEEDED_MAJOR = 24;
const packageRoot = new URL('../', import.meta.url);

if (majorOf(process.versions.node) >= NEEDED_MAJOR) {
  const sources = new URL('src/main.ts', packageRoot);
  const entry = existsSync(sources) ? sources : new URL('dist/main.js', packageRoot);
  await import(entry.href);
} else {
  const node = findPinnedNode();
  if (node === undefined) {
    console.error(
      `redrive needs Node ${NEEDED_MAJOR} or newer, and this is Node ${process.versions.node}. ` +
        `Install a newer one from https://nodejs.org, or add it to your project: npm install node@${NEEDED_MAJOR}`,
    );
    process.exitCode = 1;
  } else {
    handOverTo(node);
  }
}

function majorOf(version) {
  return Number.parseInt(version, 10);
}

/** The npm package `node` holds a Node binary; npm may have put it here or further up. */
function findPinnedNode() {
  try {
    const manifest = createRequire(import.meta.url).resolve('node/package.json');
    if (majorOf(JSON.parse(readFileSync(manifest, 'utf8')).version) < NEEDED_MAJOR) return undefined;
    const binary = join(dirname(manifest), 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
    return existsSync(binary) ? binary : undefined;
  } catch {
    return undefined;
  }
}

/** Runs this file again on the other Node and is, for whoever started us, that process: signals in, exit code out. */
function handOverTo(node) {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const child = spawn(node, args, { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2']) {
    // Ctrl-C and Ctrl-\ in a terminal reach the child directly; passed on as well, they would count twice.
    const comesFromTerminal = process.stdin.isTTY && (signal === 'SIGINT' || signal === 'SIGQUIT');
    process.on(signal, () => comesFromTerminal || child.kill(signal));
  }
  child.on('error', (error) => {
    console.error(`redrive could not start ${node}: ${error.message}`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}
