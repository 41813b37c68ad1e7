-- Tables that take no write without a fence. Their triggers are made by the program, because these
-- databases cannot make one in a procedure; they look into fenced_entered, which is there already.
DO 0;
