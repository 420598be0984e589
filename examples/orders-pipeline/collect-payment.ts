import type { Chance } from './chance.ts';
import type { Order } from './order.ts';

export type Payment = Readonly<{
  order_id: string;
  customer: string;
  amount_eur: number;
  card_ending: string;
}>;

const cardIsDeclined = 0.08;
const bankIsAway = 0.1;

export function paymentFor(order: Order, chance: Chance): Payment {
  const { order_id, customer, amount_eur } = order;
  const digits = Math.floor(chance(`card of ${customer}`) * 10_000);
  return { order_id, customer, amount_eur, card_ending: String(digits).padStart(4, '0') };
}

/** Collects one payment or throws. A declined card is declined again; the bank is back at most retries. */
export function collectPayment(chance: Chance, payment: Payment, attempt: number): void {
  if (chance(`limit for ${payment.order_id}`) < cardIsDeclined)
    throw new JavaError(
      'com.example.payments.CardDeclinedException',
      `card ending in ${payment.card_ending} was declined: insufficient funds`,
    );
  if (chance(`bank for ${payment.order_id}, attempt ${attempt}`) < bankIsAway)
    throw new JavaError('com.example.payments.BankUnavailableException', 'the bank answered 503');
}

/** An error as a Java service would throw it, with the stack that it would log. */
export class JavaError extends Error {
  readonly className: string;
  readonly javaStack: string;

  constructor(className: string, message: string) {
    super(message);
    this.className = className;
    this.javaStack =
      `${className}: ${message}\n` +
      '\tat com.example.payments.CardTerminal.charge(CardTerminal.java:57)\n' +
      '\tat com.example.payments.PaymentsListener.onPayment(PaymentsListener.java:31)\n';
  }
}
