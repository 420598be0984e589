import { InvalidArgumentError } from 'commander';

/** Reads an option or argument that is a whole number within bounds. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`It is not a whole number from ${min} to ${max}.`);
    return value;
  };
}
