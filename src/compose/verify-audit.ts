/** What `doctor` needs: it verifies without a server. */
export { verifyChain } from '../audit/index.ts';
