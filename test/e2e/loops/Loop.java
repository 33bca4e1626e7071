// SPDX-License-Identifier: Apache-2.0
// A selector's loop, which waits for another selector inside a tick.
import java.nio.channels.Selector;

class Loop {
	public static void main(String[] args) throws Exception {
		Selector selector = Selector.open(), other = Selector.open();
		StringBuilder blocks = new StringBuilder();
		int ticks = 0;

		while (ticks < 20) {
			selector.select(3);
			ticks++;
			if (ticks == 8 || ticks == 12) {
				long begin = System.nanoTime();
				other.select(40);
				blocks.append(blocks.length() > 0 ? ", " : "").append("[\"epoll_wait\", ").append(begin).append(", ");
				blocks.append(System.nanoTime()).append("]");
			}
		}
		selector.close();
		long over = System.nanoTime();
		Thread.sleep(60);
		System.out.println("{\"loop\": \"epoll_wait loop\", \"ticks\": " + ticks + ", \"over\": " + over + ", \"blocks\": [" + blocks + "]}");
	}
}
