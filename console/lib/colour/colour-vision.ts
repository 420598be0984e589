import type { LinearColour } from './srgb.ts';

export type Vision = 'normal' | 'protan' | 'deutan' | 'tritan';

type Matrix = readonly [LinearColour, LinearColour, LinearColour];

/** Machado, Oliveira and Fernandes (2009), severity 1. */
const matrices: Readonly<Record<Vision, Matrix>> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritan: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

/** The colour as somebody with this vision sees it. */
export function seenAs(colour: LinearColour, vision: Vision): LinearColour {
  const [red, green, blue] = matrices[vision];
  const apply = (row: LinearColour): number =>
    Math.min(1, Math.max(0, row[0] * colour[0] + row[1] * colour[1] + row[2] * colour[2]));
  return [apply(red), apply(green), apply(blue)];
}
