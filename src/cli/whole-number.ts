import { InvalidArgumentError } from 'commander';

/** Parses an option or argument as a whole number within bounds. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`Must be a whole number from ${min} to ${max}.`);
    return value;
  };
}
