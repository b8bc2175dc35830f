"""Feel: what an epsilon does.

```
section     /feel: on a made-up answer (mock), and to an attacker (meaning)
```
"""
