"""What stands before the sections: logins as cookies, and what every request passes.

```
entering    /login, /logout: a token becomes a sealed cookie (cookies), which lasts a working day
passing     what each request passes: the cookie, who asks, how much is sent, where a form came from
badges      how many alerts there are, beside the name of a section
```
"""
