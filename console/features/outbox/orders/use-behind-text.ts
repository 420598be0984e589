import { useText } from '../../../components/text/use-text.ts';
import { formatCount } from '../../../lib/sizes.ts';
import type { OrderDetails } from '../../../lib/server-shapes.ts';
import { ordersTexts } from './texts/orders-texts.ts';

/** How many orders wait behind one; a long queue is not counted to its end. */
export function useBehindText(lane: OrderDetails['lane']): string {
  const t = useText(ordersTexts);
  if (lane === null) return '0';
  return lane.behind_is_lower_bound === true ? t.atLeast(lane.behind) : formatCount(lane.behind);
}
