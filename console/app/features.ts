import type { Feature } from '../components/feature.ts';
import { dlq } from '../features/dlq/dlq.ts';

/** In the order of the navigation. */
export const features: readonly Feature[] = [dlq];
